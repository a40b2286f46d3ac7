#pragma once
// The state of composing one scenario, and its tables as every part of composing reads them: the
// user's, else the accounting's defaults, with a diagnostic for what is no table, no string or no
// key. Internal to compose_scenario.cpp and the parts beside it.
//
//   class ComposeSettings final : ComposeTables { ... Word(Table("software"), "software", "preset",
//     &place) ... };

#include <optional>
#include <string>
#include <vector>

#include "io/catalog.h"
#include "io/compose_memory.h"
#include "io/compose_scenario.h"

namespace shardlab {

struct ComposeState {
  const PluginRegistry& registry;
  const Scenario& scenario;
  Diagnostics& diagnostics;
  ComposeMemory* memory;  // null: nothing is shared with other compositions
  ComposedScenario out = {};
  std::optional<Accounting> accounting = std::nullopt;  // there as soon as it is read
  Precision precision = {};
  Training training = {};
  std::vector<std::string> complained =
      {};  // paths of what should be tables and was said not to be
};

class ComposeTables {
 protected:
  explicit ComposeTables(ComposeState* state)
      : registry_(state->registry),
        scenario_(state->scenario),
        diagnostics_(state->diagnostics),
        memory_(state->memory),
        out_(state->out),
        accounting_(state->accounting),
        precision_(state->precision),
        training_(state->training),
        complained_(state->complained) {}

  // What `make` makes, once where there is a memory.
  template <class T, class Make>
  std::optional<T> Once(ComposeMemory::Kept<T> ComposeMemory::*kept, const std::string& key,
                        Make make) {
    if (memory_ == nullptr) return make();
    if (std::optional<T> known = memory_->Find(memory_->*kept, key)) return known;
    const std::size_t before = diagnostics_.all().size();
    std::optional<T> made = make();
    if (made && diagnostics_.all().size() == before) memory_->Keep(&(memory_->*kept), key, *made);
    return made;
  }

  Place FilePlace(const std::string& key = "") const { return {scenario_.file, 0, 0, key}; }
  // The user's table, or null. A value of another kind is a diagnostic.
  const Value* Table(const std::string& path);
  // It was said already that this is no table.
  bool Complained(const std::string& path) const;
  const Value* Defaults(const std::string& path) const;  // of the accounting, or null
  Place PlaceOfTable(const Value* table, const std::string& path) const;
  // A word under `path`.KEY of the user or of the accounting's defaults; "" for neither, and for a
  // mistake that is told. `names`: what it may be.
  std::string Word(const Value* table, const std::string& path, const std::string& key,
                   Place* place, const std::vector<std::string>& names = {});
  void UnknownKeys(const Value* table, const std::string& path,
                   const std::vector<std::string>& known);

  const PluginRegistry& registry_;
  const Scenario& scenario_;
  Diagnostics& diagnostics_;
  ComposeMemory* const memory_;
  ComposedScenario& out_;
  std::optional<Accounting>& accounting_;
  Precision& precision_;
  Training& training_;
  std::vector<std::string>& complained_;
};

}  // namespace shardlab
