#include "laws/plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "laws/made.h"
#include "laws/random.h"

namespace shardlab {
namespace {

constexpr std::size_t kPlans = 300;
constexpr int kMostDraws = 20'000;

std::string Quoted(const std::string& word) { return "\"" + word + "\""; }

class Drawer {
 public:
  Drawer() : registry_(BuiltPlugins()), random_(20251129) {}

  Draft Draw() {
    Draft draft;
    const std::string accounting = random_.Of(CatalogNames(registry_, "accounting"));
    draft.tables.push_back({"", {{"name", Quoted("law")}, {"accounting", Quoted(accounting)}}});
    draft.tables.push_back(Model());
    draft.tables.push_back(Hardware());
    draft.tables.push_back(
        {"training",
         {{"sequence_length", std::to_string(random_.Of<int>({64, 512, 4096}))},
          {"micro_batch_size", std::to_string(random_.Of<int>({1, 1, 2, 4}))},
          {"global_batch_size", std::to_string(random_.Of<int>({64, 128, 256, 512}))}}});
    if (random_.Chance(0.3)) {
      draft.tables.push_back(
          {"precision", {{"recipe", Quoted(random_.Of(CatalogNames(registry_, "precision")))}}});
    }
    if (random_.Chance(0.2))
      draft.tables.push_back(
          {"optimizer", {{"plugin", Quoted(random_.Of(registry_.Names("optimizer")))}}});
    for (const std::string& name : registry_.Names("strategy")) {
      if (random_.Chance(0.45))
        draft.tables.push_back({"strategy." + name, Parameters("strategy", name, 0.6)});
    }
    if (random_.Chance(0.5)) {
      draft.tables.push_back(
          {"software", {{"preset", Quoted(random_.Of(CatalogNames(registry_, "software")))}}});
    }
    if (random_.Chance(0.75)) draft.tables.push_back(Schedule());
    return draft;
  }

 private:
  bool Has(const std::vector<ParameterDoc>& docs, const std::string& name) const {
    return std::any_of(docs.begin(), docs.end(),
                       [&](const ParameterDoc& doc) { return doc.name == name; });
  }

  Table Model() {
    const std::string name = random_.Of(registry_.Names("model"));
    Table table{"model", {{"plugin", Quoted(name)}}};
    const std::vector<ParameterDoc> docs = DocsOf("model", name);
    const std::vector<std::string> presets = PresetsOf(name);
    if (!presets.empty()) table.keys.emplace_back("preset", Quoted(random_.Of(presets)));
    if (!presets.empty() && random_.Chance(0.5)) return table;
    const auto set = [&](const char* key, const std::vector<int>& sizes) {
      if (Has(docs, key)) table.keys.emplace_back(key, std::to_string(random_.Of(sizes)));
    };
    set("layers", {4, 8, 12, 16});
    set("hidden", {64, 256});
    set("heads", {8, 16});
    set("kv_heads", {2, 4, 8});
    set("head_dim", {8, 16});
    set("ffn", {192, 256, 1024});
    set("vocabulary", {512, 1024});
    return table;
  }

  Table Hardware() {
    const std::string name = random_.Of(registry_.Names("hardware"));
    Table table{"hardware", {{"plugin", Quoted(name)}}};
    if (Has(DocsOf("hardware", name), "nodes"))
      table.keys.emplace_back("nodes", std::to_string(random_.Of<int>({1, 2, 4, 8})));
    if (random_.Chance(0.5))
      table.keys.emplace_back("network", Quoted(random_.Of(registry_.Names("network"))));
    return table;
  }

  Table Schedule() {
    const std::string name = random_.Of(registry_.Names("schedule"));
    Table table{"schedule", Parameters("schedule", name, 0.3)};
    table.keys.emplace_back("plugin", Quoted(name));
    table.keys.emplace_back("degree", std::to_string(random_.Of<int>({1, 2, 4, 8})));
    if (random_.Chance(0.3))
      table.keys.emplace_back("chunks", std::to_string(random_.Of<int>({1, 2, 4})));
    return table;
  }

  std::vector<std::pair<std::string, std::string>> Parameters(const std::string& kind,
                                                              const std::string& name,
                                                              double share) {
    std::vector<std::pair<std::string, std::string>> keys;
    for (const ParameterDoc& doc : DocsOf(kind, name)) {
      if (!random_.Chance(share)) continue;
      const std::string value = Drawn(doc);
      if (!value.empty()) keys.emplace_back(doc.name, value);
    }
    return keys;
  }

  std::string Drawn(const ParameterDoc& doc) {
    if (doc.type == "boolean") return random_.Chance(0.5) ? "true" : "false";
    if (doc.type == "string") return doc.choices.empty() ? "" : Quoted(random_.Of(doc.choices));
    if (doc.type == "number") {
      if (!std::isfinite(doc.minimum) || !std::isfinite(doc.maximum)) return "";
      return std::to_string(doc.minimum +
                            random_.Between(0, 4) * 0.25 * (doc.maximum - doc.minimum));
    }
    const bool integer = doc.type == "integer", or_word = doc.type.rfind("integer or ", 0) == 0;
    if (!integer && !or_word) return "";
    if (or_word && random_.Chance(0.5)) return doc.type.substr(11);
    if (or_word || doc.name.find("degree") != std::string::npos)
      return std::to_string(random_.Of<int>({1, 2, 4, 8}));
    const double low = std::isfinite(doc.minimum) ? doc.minimum : 0;
    return std::to_string(
        random_.Between(static_cast<int>(low), static_cast<int>(std::min(doc.maximum, low + 3))));
  }

  const PluginRegistry& registry_;
  Random random_;
};

struct Drawn {
  std::vector<LawPlan> plans;
  std::vector<Diagnostic> refusals;
};

const Drawn& AllDrawn() {
  static const Drawn* const drawn = [] {
    auto* all = new Drawn;
    Drawer drawer;
    for (int i = 0; i < kMostDraws && all->plans.size() < kPlans; ++i) {
      Diagnostics refusal;
      std::optional<LawPlan> plan = PlanOf(drawer.Draw(), &refusal);
      if (plan) all->plans.push_back(std::move(*plan));
      for (const Diagnostic& d : refusal.all()) all->refusals.push_back(d);
    }
    EXPECT_EQ(all->plans.size(), kPlans) << "too few draws are legal";
    return all;
  }();
  return *drawn;
}

}  // namespace

std::string* Table::Find(const std::string& key) {
  for (auto& [name, value] : keys) {
    if (name == key) return &value;
  }
  return nullptr;
}

void Table::Set(const std::string& key, std::string value) {
  if (std::string* known = Find(key)) {
    *known = std::move(value);
  } else {
    keys.emplace_back(key, std::move(value));
  }
}

Table* Draft::Find(const std::string& header) {
  for (Table& table : tables) {
    if (table.header == header) return &table;
  }
  return nullptr;
}

std::string Draft::Text() const {
  std::string text;
  for (const Table& table : tables) {
    if (!table.header.empty()) text += "\n[" + table.header + "]\n";
    for (const auto& [key, value] : table.keys) text += key + " = " + value + "\n";
  }
  return text;
}

std::optional<LawPlan> PlanOf(const Draft& draft, Diagnostics* refusal) {
  LawPlan plan;
  plan.draft = draft;
  plan.text = draft.Text();
  const Scenario scenario = ScenarioFromText(plan.text, "law.toml", {}, plan.diagnostics);
  if (!plan.diagnostics.HasErrors())
    plan.planned = PlanScenario(BuiltPlugins(), scenario, &plan.diagnostics, PlannedOrder::kWhole);
  if (plan.planned.composed.composition == nullptr) {
    EXPECT_TRUE(plan.diagnostics.HasErrors()) << "refused without a reason:\n" << plan.text;
    if (refusal != nullptr) *refusal = plan.diagnostics;
    return std::nullopt;
  }
  EXPECT_FALSE(plan.diagnostics.HasErrors());
  plan.document = PlanDocument(plan.planned, plan.diagnostics);
  return plan;
}

const std::vector<LawPlan>& LegalPlans() { return AllDrawn().plans; }
const std::vector<Diagnostic>& Refusals() { return AllDrawn().refusals; }

std::string NeutralValue(const std::string& parameter) {
  if (parameter == "degree" || parameter == "shard") return "1";
  if (parameter == "stage") return "0";
  if (parameter == "mode") return "\"none\"";
  return "";
}

}  // namespace shardlab
