#pragma once
// [sweep] and [filter] as read: which keys take which values, together or each with all others.
// Combinations are numbered; the last key varies fastest. Nothing here knows what a key means.
//
//   std::optional<SweepTable> table = ReadSweepTable(scenario, &diagnostics);
//   for (std::int64_t i = 0; i < table->size(); ++i) use(table->At(i));

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/condition.h"
#include "io/scenario.h"

namespace shardlab {

struct SweptKey {
  std::string key;  // as in --set
  std::vector<std::string> path;
  Place place;
};

// Keys that vary together: one key, or a zip.
struct SweepGroup {
  std::vector<SweptKey> keys;
  std::vector<std::vector<Value>> values;  // [step][key]
};

struct SweepTable {
  std::vector<SweepGroup> groups;
  std::optional<Condition> when, keep;

  std::int64_t size() const;
  std::vector<const SweptKey*> Keys() const;
  // The values of a combination, in the order of Keys().
  std::vector<const Value*> At(std::int64_t combination) const;
};

// More is a mistake in the table, or years of work.
inline constexpr std::int64_t kMostCombinations = 100'000'000;

// Nothing, with diagnostics, when there is no [sweep] or it cannot be read. Every mistake is told.
std::optional<SweepTable> ReadSweepTable(const Scenario& scenario, Diagnostics* diagnostics);

// A list, or {from, to, times | plus}: the values, with their places; empty with diagnostics.
std::vector<Value> ReadValues(const std::string& key, const Value& value, Diagnostics* diagnostics);

// The scenario with a combination's values in it.
Scenario WithValues(const Scenario& scenario, const std::vector<const SweptKey*>& keys,
                    const std::vector<const Value*>& values, Diagnostics* diagnostics);

}  // namespace shardlab
