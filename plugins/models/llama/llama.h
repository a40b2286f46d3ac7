#pragma once
// Dense Llama: RMSNorm before attention and MLP, rotary grouped-query attention, SwiGLU, no biases,
// untied head (Touvron et al. 2023, arXiv 2302.13971; Grattafiori et al. 2024, arXiv 2407.21783).
//
//   [model]
//   plugin = "llama"
//   preset = "llama3.1-70b"        # or layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary

#include <string>
#include <vector>

#include "api/model.h"

namespace shardlab::llama {

struct Dimensions {
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocabulary = 0;

  double Attention() const {
    return 2.0 * hidden * heads * head_dim + 2.0 * hidden * kv_heads * head_dim;
  }
  double Mlp() const { return 3.0 * hidden * ffn; }
  double Layer() const { return Attention() + Mlp() + 2.0 * hidden; }
  double Parameters() const { return layers * Layer() + 2.0 * vocabulary * hidden + hidden; }
};

class Llama final : public Model {
 public:
  void Visit(ParameterVisitor& v) override;
  void Init(const InitContext& context) override;
  absl::Status Describe(ProgramBuilder& program, const ModelRequest& request) const override;

 private:
  void ReadPreset(const InitContext& context);
  void Check(const InitContext& context) const;
  void Ops(ProgramBuilder& p) const;     // op by op
  void Coarse(ProgramBuilder& p) const;  // the classroom's lumps

  std::string preset_;
  std::string source_;
  bool tied_ = false;
  Dimensions dims_;
};

}  // namespace shardlab::llama
