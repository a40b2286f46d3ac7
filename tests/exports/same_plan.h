#pragma once
// A plan that is made again from what was exported, and the same plan: every rank must need the
// same bytes and the step the same time.
//
//   ExpectSamePlan(first, PlanAgain(first, {{"model", model}, {"strategy", strategy}, ...}));

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "exports/exported.h"

namespace shardlab::exports {

using Json = nlohmann::json;

inline std::string ToToml(const Json& value) {
  if (value.is_object()) {
    std::string out = "{";
    for (const auto& [key, item] : value.items()) {
      if (item.is_null()) continue;
      out += (out.size() > 1 ? ", " : "") + ("\"" + key + "\" = ") + ToToml(item);
    }
    return out + "}";
  }
  return value.dump();
}

// A scenario of the tables given; the machine and the training are the first plan's.
inline Json PlanAgain(const Json& first, const Json& tables) {
  Json scenario = {{"name", "again"}, {"accounting", first.at("accounting")}};
  for (const char* table : {"hardware", "training", "software", "optimizer"})
    scenario[table] = first.at("resolved").at(table);
  scenario.update(tables);
  std::string toml;
  for (const auto& [key, value] : scenario.items()) toml += key + " = " + ToToml(value) + "\n";
  return PlanText(toml);
}

inline void ExpectSamePlan(const Json& first, const Json& again) {
  ASSERT_TRUE(again.is_object()) << again;
  EXPECT_EQ(again.at("model").at("parameters"), first.at("model").at("parameters"));
  EXPECT_EQ(again.at("memory").at("ranks"), first.at("memory").at("ranks"));
  EXPECT_EQ(again.at("plan").at("layers"), first.at("plan").at("layers"));
  EXPECT_EQ(again.at("time").at("step_seconds"), first.at("time").at("step_seconds"));
}

}  // namespace shardlab::exports
