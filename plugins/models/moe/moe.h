#pragma once
// Mixtures of experts: a router sends each token to its top-k experts, gated MLPs of their own
// (Shazeer et al. 2017, arXiv 1701.06538; Jiang et al. 2024, arXiv 2401.04088), beside shared ones
// that see every token (Dai et al. 2024, arXiv 2401.06066); attention as in Llama, or latent
// (DeepSeek-V2, arXiv 2405.04434).
//
//   [model]
//   plugin = "moe"
//   preset = "mixtral-8x7b"        # or experts, top_k, expert_ffn, ... beside the usual dimensions

#include "api/transformer.h"

namespace shardlab::moe {

class Moe final : public Transformer {
 public:
  Moe() : Transformer("moe") {}
  void Visit(ParameterVisitor& v) override {
    VisitDimensions(v, "inner width of the MLP of layers without experts");
    VisitExperts(v);
    VisitBlock(v);
    VisitAttention(v);
    VisitLatentAttention(v);
  }
  void Init(const InitContext& context) override {
    Transformer::Init(context);
    if (shape_.layers == 0 || shape_.experts > 0) return;
    context.diagnostics->Error("model.dimension", context.place_of("experts"), "moe needs experts",
                               "write it, or name a preset");
  }
};

}  // namespace shardlab::moe
