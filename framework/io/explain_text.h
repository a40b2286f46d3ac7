#pragma once
// The report of `shardlab explain`: the rows behind a plan's numbers.
//
//   out << ExplainText(planned, "optimizer", style);

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/plan_document.h"
#include "io/text_style.h"

namespace shardlab {

// The signed rows of one account on each pipeline rank (and of time and communication), largest
// first. `account` as in the JSON: "optimizer", "activations", "communication", "time", ...; empty:
// all.
std::string ExplainText(const PlannedScenario& planned, const std::string& account,
                        const TextStyle& style);
nlohmann::ordered_json ExplainDocument(const PlannedScenario& planned, const std::string& account);
// What may be explained.
std::vector<std::string> ExplainableAccounts();

}  // namespace shardlab
