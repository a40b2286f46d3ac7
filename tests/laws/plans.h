#pragma once
// A few hundred legal plans, the same each time, drawn over all that is installed: accountings,
// models, machines, networks, recipes, optimizers, schedules and strategies, with their documented
// parameters varied. No plugin is named: a new one is drawn too.
//
//   for (const LawPlan& plan : LegalPlans()) {
//     SCOPED_TRACE(plan.text);
//     ...
//   }

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/plan_document.h"

namespace shardlab {

struct Table {
  std::string header;  // "strategy.tensor"; "" for the top
  std::vector<std::pair<std::string, std::string>> keys;

  std::string* Find(const std::string& key);
  void Set(const std::string& key, std::string value);
};

struct Draft {
  std::vector<Table> tables;

  Table* Find(const std::string& header);
  std::string Text() const;
};

struct LawPlan {
  Draft draft;
  std::string text;
  PlannedScenario planned;
  Diagnostics diagnostics;
  nlohmann::ordered_json document;

  const Composition& composition() const { return *planned.composed.composition; }
  const CompiledOrder* order() const { return planned.order ? &*planned.order : nullptr; }
  const Plan& plan() const { return composition().plan; }
};

// Nothing when it is refused; `refusal` then has why.
std::optional<LawPlan> PlanOf(const Draft& draft, Diagnostics* refusal = nullptr);

const std::vector<LawPlan>& LegalPlans();
// What the draws that were refused were told.
const std::vector<Diagnostic>& Refusals();

// A value that makes a strategy do nothing, by the word for it: degree 1, stage 0, mode "none". ""
// = this parameter has none.
std::string NeutralValue(const std::string& parameter);

}  // namespace shardlab
