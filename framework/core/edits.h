#pragma once
// Applying the strategies' edits to a Program, phase by phase: declare, retype and scale, shard,
// fill, place work, state, activations, derive, realise. The order of the file does not matter; two
// edits that want different things of the same row are a diagnostic that names both strategies and
// both places.
//
//   std::optional<Edited> edited = ApplyStrategies(std::move(program), uses, rules, mesh_order,
//   &diagnostics);

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/strategy.h"
#include "domain/accounting.h"

namespace shardlab {

// A strategy as a scenario uses it.
struct StrategyUse {
  std::string name;
  const Strategy* strategy = nullptr;
  std::function<Place(const std::string& parameter)> place_of;  // "" = the table itself
};

// The product of the dimensions ("64 attention heads") must divide by the degree of these atoms;
// checked for every plan.
struct Requirement {
  AtomMask atoms = 0;
  std::vector<DimensionId> dimensions;
  std::string what;
  Place place;
  // Instead: a degree above 1 is refused, with this message and hint.
  std::string message, hint;
};

struct Edited {
  Program program;
  Mesh mesh;
  Derived derived;
  std::vector<Requirement> requirements;
  std::map<std::string, Value> plan_facts;
  std::map<std::string, AtomMask> plan_degrees;  // facts that are a number of ranks
};

class RowsMemory;

// `mesh_order`: "tp-cp-ep-dp-pp" (first is fastest), any order of these five; empty = that default.
std::optional<Edited> ApplyStrategies(Program program, const std::vector<StrategyUse>& strategies,
                                      const AccountingRules& rules, const std::string& mesh_order,
                                      const Place& mesh_place, Diagnostics* diagnostics,
                                      RowsMemory* memory = nullptr);

// Every layer written out: each class repeated, streams joined, segments of recomputed layers as
// one class. What the toy machine of the tests runs; deriving it gives the rolled program's steps,
// layer by layer.
Program Unroll(const Program& program);

}  // namespace shardlab
