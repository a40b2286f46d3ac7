#pragma once
// What the compositions of one search have in common, read and made once, for all its threads:
// data files, the model's rows, machine, network and optimizer, and what rows derive to. What came
// with a diagnostic is not kept: it is said again each time.
//
//   ComposeMemory memory;     // for one registry
//   ComposeScenario(registry, scenario, &diagnostics, ComposeWhat::kCompositionOnly, &memory);

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "api/plugin.h"
#include "core/rows_memory.h"
#include "domain/accounting.h"
#include "domain/precision.h"
#include "domain/program.h"
#include "io/catalog.h"

namespace shardlab {

// A precision recipe: its dtypes, and the numbers that come with it.
struct Recipe {
  Precision precision;
  std::map<std::string, SoftwareNumber> numbers;
};

class ComposeMemory final {
 public:
  template <class T>
  using Kept = std::map<std::string, T>;

  // Keys are all that the answer depends on.
  template <class T>
  std::optional<T> Find(const Kept<T>& kept, const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = kept.find(key);
    return found == kept.end() ? std::nullopt : std::optional<T>(found->second);
  }
  // What is kept: of two that are made at the same time the first.
  template <class T>
  T Keep(Kept<T>* kept, const std::string& key, T value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    constexpr std::size_t kMost = 256;  // of a kind: whatever is varied, it stays small
    if (kept->size() >= kMost) kept->clear();
    return kept->emplace(key, std::move(value)).first->second;
  }

  Kept<std::string> default_accounting;
  Kept<Accounting> accountings;
  Kept<Software> software;
  Kept<Recipe> recipes;
  Kept<Value> files;  // kNone: there is none
  Kept<Program> programs;
  Kept<std::shared_ptr<Plugin>> plugins;  // initialised; networks connected to their machine
  RowsMemory rows;

 private:
  std::mutex mutex_;
};

}  // namespace shardlab
