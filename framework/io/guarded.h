#pragma once
// Calls into a plugin that may throw. Whatever comes out, a std::exception, a number, anything,
// becomes a status with the text copied, so that nothing of the plugin's travels further up.
//
//   absl::Status ok = Guarded("strategy zero cannot list its parameters", [&] { plugin->Visit(v);
//   });
//
// For calls that may fail in the ordinary way F may return absl::Status itself. Calls with a
// noexcept contract (OpTime, TransferTime) are made directly.

#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace shardlab {

// For catch blocks and terminate handlers: "it throws an exception (text)", and the same behind
// "WHAT: ".
std::string DescribeCurrentException();
absl::Status StatusOfCurrentException(const std::string& what);

template <class F>
absl::Status Guarded(const std::string& what, F&& f) {
  try {
    if constexpr (std::is_same_v<std::invoke_result_t<F>, absl::Status>) {
      return std::forward<F>(f)();
    } else {
      std::forward<F>(f)();
      return absl::OkStatus();
    }
  } catch (...) {
    return StatusOfCurrentException(what);
  }
}

}  // namespace shardlab
