#pragma once
// Two plans side by side: what is set differently, memory of the worst rank by account, where the
// step's time goes, throughput, traffic by axis, and the rows of explain that differ.
//
//   nlohmann::ordered_json c = CompareDocument(a, document_a, b, document_b);
//   out << CompareText(c, style);

#include <nlohmann/json.hpp>
#include <string>

#include "io/plan_document.h"
#include "io/text_style.h"

namespace shardlab {

// Schema "shardlab.compare/1". `document_a` is PlanDocument(a, ...). A row that one plan lacks has
// null there; rows are those of memory.worst_rank and time.rank of each plan.
nlohmann::ordered_json CompareDocument(const PlannedScenario& a,
                                       const nlohmann::ordered_json& document_a,
                                       const PlannedScenario& b,
                                       const nlohmann::ordered_json& document_b);

std::string CompareText(const nlohmann::ordered_json& comparison, const TextStyle& style);

}  // namespace shardlab
