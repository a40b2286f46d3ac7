#pragma once
// Dense decoders with a plain MLP: GPT-2 and GPT-3 (Radford et al. 2019; Brown et al. 2020, arXiv
// 2005.14165), OPT, BLOOM, Falcon, MPT, GPT-NeoX, Phi and their relatives: layer norms, GELU or
// ReLU, biases, learned positions or none, attention and MLP one after the other or side by side.
//
//   [model]
//   plugin = "gpt"
//   preset = "gpt2-xl"        # or layers, hidden, heads, ffn, vocabulary, positions, tied

#include "api/transformer.h"

namespace shardlab::gpt {

class Gpt final : public Transformer {
 public:
  Gpt() : Transformer("gpt") {
    shape_.gated = false;
    shape_.norm = "layer";
    shape_.qkv_bias = shape_.o_bias = shape_.mlp_bias = true;
  }
  void Visit(ParameterVisitor& v) override {
    VisitDimensions(v, "inner width of the MLP");
    VisitBlock(v);
    VisitAttention(v);
    VisitEnds(v);
  }
};

}  // namespace shardlab::gpt
