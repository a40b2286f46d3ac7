#pragma once
// Dense decoders with a gated MLP: Llama (Touvron et al. 2023, arXiv 2302.13971; Grattafiori et al.
// 2024, arXiv 2407.21783) and its relatives, which differ in biases, norms and the head.
//
//   [model]
//   plugin = "llama"
//   preset = "llama3.1-70b"        # or layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary

#include "api/transformer.h"

namespace shardlab::llama {

class Llama final : public Transformer {
 public:
  Llama() : Transformer("llama") {}
  void Visit(ParameterVisitor& v) override {
    VisitDimensions(v, "inner width of the gated MLP");
    VisitBlock(v);
    VisitAttention(v);
  }
};

}  // namespace shardlab::llama
