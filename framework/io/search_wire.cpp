#include "io/search_wire.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardlab {
namespace {

// A field added to what is copied whole travels by itself.
static_assert(std::is_trivially_copyable_v<Found>);
static_assert(std::is_trivially_copyable_v<SweepCounts>);

class Writer {
 public:
  template <class T>
  void Plain(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void List(const std::vector<Found>& list) {
    Plain(std::uint64_t{list.size()});
    for (const Found& found : list) Plain(found);
  }
  void Text(const std::string& text) {
    Plain(std::uint64_t{text.size()});
    bytes_ += text;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what a Writer wrote; once something is missing, nothing more.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  template <class T>
  void Plain(T* value) {
    if (!Has(sizeof *value)) return;
    std::memcpy(static_cast<void*>(value), bytes_.data() + at_, sizeof *value);
    at_ += sizeof *value;
  }
  void List(std::vector<Found>* list) {
    const std::uint64_t size = Size(sizeof(Found));
    for (std::uint64_t i = 0; i < size; ++i) Plain(&list->emplace_back());
  }
  void Text(std::string* text) {
    const std::uint64_t size = Size(1);
    text->assign(bytes_, at_, size);
    at_ += size;
  }
  // A number of things of so many bytes each, which are there.
  std::uint64_t Size(std::size_t each) {
    std::uint64_t size = 0;
    Plain(&size);
    if (size > (bytes_.size() - at_) / each) good_ = false;
    return good_ ? size : 0;
  }
  bool good() const { return good_; }
  bool AtEnd() const { return good_ && at_ == bytes_.size(); }

 private:
  bool Has(std::size_t size) {
    good_ = good_ && bytes_.size() - at_ >= size;
    return good_;
  }

  const std::string& bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

}  // namespace

std::string FoundToBytes(const SearchResult& result) {
  Writer writer;
  writer.Plain(result.counts);
  for (const auto* list : {&result.best, &result.pareto, &result.best_unfitting})
    writer.List(*list);
  writer.Plain(std::uint64_t{result.illegal.size()});
  for (const auto& [code, reason] : result.illegal) {
    writer.Text(code);
    writer.Plain(reason.count);
    writer.Text(reason.example);
  }
  return writer.Take();
}

absl::StatusOr<SearchResult> FoundFromBytes(const std::string& bytes) {
  Reader reader(bytes);
  SearchResult result;
  reader.Plain(&result.counts);
  for (auto* list : {&result.best, &result.pareto, &result.best_unfitting}) reader.List(list);
  const std::uint64_t reasons = reader.Size(1);
  for (std::uint64_t i = 0; i < reasons && reader.good(); ++i) {
    std::string code;
    IllegalReason reason;
    reader.Text(&code);
    reader.Plain(&reason.count);
    reader.Text(&reason.example);
    result.illegal[code] = std::move(reason);
  }
  if (!reader.AtEnd()) return absl::DataLossError("a part of a search cannot be read");
  return result;
}

}  // namespace shardlab
