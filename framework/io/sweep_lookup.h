#pragma once
// What the names in `when` and `keep` stand for.
//
//   keep.Holds([&](const std::string& name) { return InDocument(document, name); }, &problem);

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/condition.h"
#include "io/scenario.h"

namespace shardlab {

// Nothing for what is no single value.
std::optional<Condition::Scalar> ScalarOf(const nlohmann::ordered_json& json);

// A dotted path through tables; null where a step is missing.
const nlohmann::ordered_json* AtDotted(const nlohmann::ordered_json& json, const std::string& path);

// `when`: a key of the scenario as it stands for a combination, or as its default.
std::optional<Condition::Scalar> KeyValue(const Scenario& with,
                                          const nlohmann::ordered_json& defaults,
                                          const std::string& name);

// `keep`: a path of the plan document, else a key of its `resolved`.
std::optional<Condition::Scalar> InDocument(const nlohmann::ordered_json& document,
                                            const std::string& name);

}  // namespace shardlab
