#pragma once
// What a scenario sets that is no plugin: its accounting and software, precision, training; and
// what strategies bring as defaults. Internal to compose_scenario.cpp.

#include "io/compose_tables.h"

namespace shardlab {

class ComposeSettings final : ComposeTables {
 public:
  explicit ComposeSettings(ComposeState* state) : ComposeTables(state) {}

  // In this order: the accounting first, which all else asks for defaults.
  void TopLevel();
  // The file defaults.toml beside a strategy: scenario keys that stand above the accounting's and
  // below the user's, where `fact` holds. Two that differ: the first by name.
  void StrategyDefaults();
  void ReadPrecision();
  void ReadTraining();
};

}  // namespace shardlab
