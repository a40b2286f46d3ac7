#pragma once
// One row of a sweep. Rows of one composition have the same columns: names are held once for all of
// them.
//
//   for (const auto& [name, value] : row.cells) use(name, value);

#include <cstdint>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/scalar_paths.h"

namespace shardlab {

// Names with a value each. Read like a list of Cell.
class Cells final {
 public:
  using Json = nlohmann::ordered_json;
  using NameList = std::vector<std::string>;
  using Names = std::shared_ptr<const NameList>;

  Cells() : Cells(NoNames(), {}) {}
  // As many values as names.
  Cells(Names names, std::vector<Json> values)
      : names_(std::move(names)), values_(std::move(values)) {}

  const NameList& names() const { return *names_; }
  const Names& shared_names() const { return names_; }
  const std::vector<Json>& values() const { return values_; }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Cell;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = std::pair<const std::string&, const Json&>;

    Iterator(const Cells* cells, std::size_t at) : cells_(cells), at_(at) {}
    reference operator*() const { return {(*cells_->names_)[at_], cells_->values_[at_]}; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return {cells_, at_++}; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
    friend bool operator!=(const Iterator& a, const Iterator& b) { return a.at_ != b.at_; }

   private:
    const Cells* cells_;
    std::size_t at_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, values_.size()}; }

  friend bool operator==(const Cells& a, const Cells& b) {
    return (a.names_ == b.names_ || *a.names_ == *b.names_) && a.values_ == b.values_;
  }

 private:
  static const Names& NoNames() {
    static const Names none = std::make_shared<const NameList>();
    return none;
  }

  Names names_;
  std::vector<Json> values_;
};

// Hands out one list for all that are equal.
class SharedNames final {
 public:
  const Cells::Names& Of(Cells::NameList names) {
    for (std::size_t i = known_.size(); i-- > 0;) {
      if (*known_[i] == names) return known_[i];
    }
    if (known_.size() == kMost) known_.erase(known_.begin());
    known_.push_back(std::make_shared<const Cells::NameList>(std::move(names)));
    return known_.back();
  }

 private:
  static constexpr std::size_t kMost = 256;
  std::vector<Cells::Names> known_;
};

struct SweepRow {
  std::int64_t combination = 0;
  bool legal = false;
  std::string reason;    // why it is not
  Cells keys;            // what is varied, with the values of this combination
  Cells cells;           // scalars of plan, memory, time and throughput; none is null
  std::string document;  // one line of JSON, where documents are wanted
  friend bool operator==(const SweepRow&, const SweepRow&) = default;
};

}  // namespace shardlab
