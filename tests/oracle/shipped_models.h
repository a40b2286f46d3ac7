#pragma once
// The shipped models with sizes of a few elements: their rows on the toy machine.
//
//   Program program = ShippedModel<gpt::Gpt>({{"layers", Value::Integer(1)}, ...});

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "../../plugins/models/gpt/gpt.h"
#include "../../plugins/models/llama/llama.h"
#include "../../plugins/models/moe/moe.h"
#include "api/program_builder.h"

namespace shardlab::oracle {

using ModelValues = std::map<std::string, Value>;

class ModelSettings final : public ParameterVisitor {
 public:
  explicit ModelSettings(ModelValues values) : values_(std::move(values)) {}
  bool Has(const std::string& name) const { return values_.count(name) > 0; }

  void Boolean(const Parameter& p, bool* value) override {
    if (Has(p.name)) *value = values_.at(p.name).boolean;
  }
  void Integer(const Parameter& p, int* value) override {
    if (Has(p.name)) *value = static_cast<int>(values_.at(p.name).integer);
  }
  void Text(const Parameter& p, std::string* value) override {
    if (Has(p.name)) *value = values_.at(p.name).text;
  }
  void Number(const Parameter&, double*) override {}
  void Amount(const Parameter&, Unit, double*) override {}
  void Integers(const Parameter&, std::vector<int>*) override {}
  void IntegerOr(const Parameter&, const std::string&, int*) override {}
  void Raw(const Parameter&, Value*) override {}

 private:
  ModelValues values_;
};

inline ModelValues Sizes(std::initializer_list<std::pair<const char*, int>> sizes,
                         const ModelValues& more = {}) {
  ModelValues values = more;
  for (const auto& size : sizes) values.emplace(size.first, Value::Integer(size.second));
  return values;
}

// Two layers, four heads of width 2 that share two of keys and values.
template <class Model>
Program ShippedModel(ModelValues values, double sequence = 4, bool weights_inside = false) {
  for (const auto& size : Sizes({{"layers", 2},
                                 {"hidden", 4},
                                 {"heads", 4},
                                 {"kv_heads", 2},
                                 {"head_dim", 2},
                                 {"ffn", 4},
                                 {"vocabulary", 6}})) {
    values.insert(size);
  }
  Model model;
  ModelSettings settings(values);
  model.Visit(settings);
  Diagnostics said;
  InitContext context;
  context.diagnostics = &said;
  context.place_of = [](const std::string&) { return Place(); };
  context.is_given = [&](const std::string& name) { return settings.Has(name); };
  model.Init(context);
  for (const Diagnostic& d : said.all()) ADD_FAILURE() << d.message;
  ProgramBuilder builder;
  ModelRequest request;
  request.sequence_length = sequence;
  request.weights_inside_experts = weights_inside;
  EXPECT_TRUE(model.Describe(builder, request).ok());
  absl::StatusOr<Program> program = builder.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

// Layer norms, biases, learned positions, GELU, a tied head.
inline Program ShippedGpt() {
  return ShippedModel<gpt::Gpt>(Sizes({{"positions", 5}}, {{"tied", Value::Boolean(true)},
                                                           {"embedding_norm", Value::Boolean(true)},
                                                           {"head_bias", Value::Boolean(true)}}));
}
// Attention and MLP side by side under one norm without bias, ReLU.
inline Program ShippedParallel() {
  return ShippedModel<gpt::Gpt>(Sizes({{"norms", 1}}, {{"parallel", Value::Boolean(true)},
                                                       {"norm", Value::Text("layer-no-bias")},
                                                       {"activation", Value::Text("relu")}}));
}
// Norms after attention and MLP and of the whole projections, biases of queries, keys and values.
inline Program ShippedRelative(bool bare) {
  return ShippedModel<llama::Llama>({{"qkv_bias", Value::Boolean(true)},
                                     {"post_norm", Value::Boolean(true)},
                                     {"norm", Value::Text(bare ? "none" : "rms")},
                                     {"qk_norm", Value::Text(bare ? "head" : "full")}});
}
// Latent attention and a further token, a dense layer, gated shared experts, biases of router and
// experts.
inline Program ShippedExperts(bool latent) {
  ModelValues more = {{"shared_gate", Value::Boolean(true)},
                      {"router_bias", Value::Boolean(true)},
                      {"mlp_bias", Value::Boolean(true)}};
  if (latent) {
    more.emplace("mtp", Value::Boolean(true));
    more =
        Sizes({{"kv_lora", 3}, {"q_lora", 3}, {"qk_nope", 2}, {"qk_rope", 1}, {"v_dim", 3}}, more);
  } else {
    more.emplace("sinks", Value::Boolean(true));
  }
  return ShippedModel<moe::Moe>(Sizes(
      {{"experts", 4}, {"top_k", 2}, {"expert_ffn", 2}, {"shared_experts", 2}, {"dense_layers", 1}},
      more));
}

// Routing weights that travel with the tokens.
inline Program ShippedWeightsInside() {
  return ShippedModel<moe::Moe>(
      Sizes({{"experts", 4}, {"top_k", 2}, {"expert_ffn", 2}, {"shared_experts", 1}}), 4, true);
}

// Layers with and without experts take turns behind a dense one.
inline Program ShippedTurns() {
  return ShippedModel<moe::Moe>(Sizes({{"layers", 5},
                                       {"experts", 4},
                                       {"top_k", 2},
                                       {"expert_ffn", 2},
                                       {"dense_layers", 1},
                                       {"moe_every", 2}}));
}

}  // namespace shardlab::oracle
