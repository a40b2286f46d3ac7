#include "io/guarded.h"

#include <cxxabi.h>

#include <exception>
#include <string>

#include "absl/strings/str_cat.h"

namespace shardlab {

std::string DescribeCurrentException() {
  try {
    throw;
  } catch (const std::exception& e) {
    return absl::StrCat("it throws an exception (", e.what(), ")");
  } catch (const std::string& text) {
    return absl::StrCat("it throws a text (", text, ")");
  } catch (const char* text) {
    return absl::StrCat("it throws a text (", text == nullptr ? "" : text, ")");
  } catch (int number) {
    return absl::StrCat("it throws the number ", number);
  } catch (const abi::__forced_unwind&) {
    throw;  // a thread is being cancelled: swallowing this ends the program
  } catch (...) {
    return "it throws something that is not a std::exception";
  }
}

absl::Status StatusOfCurrentException(const std::string& what) {
  return absl::InternalError(absl::StrCat(what, ": ", DescribeCurrentException()));
}

}  // namespace shardlab
