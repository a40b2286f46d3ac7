#pragma once
// A scenario's text planned, for tests that hold the answer against a formula of a paper.
//
//   const Planned plan = PlanText(kSmall + "[strategy.fsdp]\n");
//   EXPECT_EQ(plan.Bytes(0, "transient"), ...);

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "io/plan_document.h"
#include "support/plugins.h"

namespace shardlab {

struct Planned {
  PlannedScenario planned;
  Diagnostics diagnostics;
  nlohmann::ordered_json document;

  bool ok() const { return planned.composed.composition != nullptr; }
  const nlohmann::ordered_json& rank(std::size_t r) const { return document["memory"]["ranks"][r]; }
  double Bytes(std::size_t r, const std::string& account) const {
    return rank(r)[account + "_bytes"].get<double>();
  }
  // All that a refusal said.
  std::string Said() const {
    std::string all;
    for (const Diagnostic& d : diagnostics.all()) all += d.message + "\n" + d.hint + "\n";
    return all;
  }
};

// Expected to be legal unless `refused`.
inline Planned PlanText(const std::string& text, bool refused = false) {
  Planned plan;
  const Scenario scenario = ScenarioFromText(text, "formula.toml", {}, plan.diagnostics);
  if (!plan.diagnostics.HasErrors())
    plan.planned = PlanScenario(BuiltPlugins(), scenario, &plan.diagnostics, PlannedOrder::kWhole);
  EXPECT_EQ(plan.ok(), !refused) << plan.Said();
  if (plan.ok()) plan.document = PlanDocument(plan.planned, plan.diagnostics);
  return plan;
}

// A Llama of four layers on one server, to which the rest of a scenario is written.
inline std::string SmallLlama(const std::string& rest, int micro_batch_size = 2,
                              int global_batch_size = 16) {
  return R"(
[model]
plugin = "llama"
layers = 4
hidden = 256
heads = 8
ffn = 1024
vocabulary = 512

[hardware]
plugin = "h100-dgx"
nodes = 1

[training]
sequence_length = 512
micro_batch_size = )" +
         std::to_string(micro_batch_size) +
         "\nglobal_batch_size = " + std::to_string(global_batch_size) + "\n\n" + rest;
}

// A mixture of eight experts, of which a token visits two, of four layers, with the rest of a
// scenario. 512 tokens a sequence, one sequence a micro-batch.
inline std::string SmallExperts(int nodes, int global_batch_size, const std::string& rest) {
  return R"(
[model]
plugin = "moe"
layers = 4
hidden = 256
heads = 8
experts = 8
top_k = 2
expert_ffn = 512
vocabulary = 512

[hardware]
plugin = "h100-dgx"
nodes = )" +
         std::to_string(nodes) + "\n\n[training]\nsequence_length = 512\nglobal_batch_size = " +
         std::to_string(global_batch_size) + "\n\n" + rest;
}

}  // namespace shardlab
