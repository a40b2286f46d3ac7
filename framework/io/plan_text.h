#pragma once
// The report of `shardlab plan` for a person: verdict first, a memory bar per pipeline rank with
// the capacity line, where the step's time goes, what travels on which link, and the next thing to
// try.
//
//   out << PlanText(planned, PlanDocument(planned, diagnostics), suggestion, style);

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/plan_document.h"
#include "io/suggest.h"
#include "io/text_style.h"

namespace shardlab {

std::string PlanText(const PlannedScenario& planned, const nlohmann::ordered_json& document,
                     const std::optional<Suggestion>& suggestion, const TextStyle& style);

}  // namespace shardlab
