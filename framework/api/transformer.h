#pragma once
// A decoder-only transformer as rows: what the model plugins of that family share. A plugin says
// which parameters its family has and what their defaults are; reading a preset, checking the
// dimensions, counting the parameters and writing both programs are here.
//
//   class Llama final : public Transformer {
//    public:
//     Llama() : Transformer("llama") {}
//     void Visit(ParameterVisitor& v) override { VisitDimensions(v); VisitAttention(v); }
//   };
//
// Parameters are counted twice, by the formulas of TransformerShape and by the rows; the two must
// agree to the element.

#include <string>

#include "api/model.h"

namespace shardlab {

// The dimensions and the options of a family. 0 and "none": the model has nothing of the kind.
struct SHARDLAB_EXPORT TransformerShape {
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocabulary = 0;
  bool tied = false;

  std::string norm = "rms";  // rms | layer | layer-no-bias | none (a layer norm without weights)
  int norms = 2;             // of a block
  bool post_norm = false;    // the two norms stand after attention and MLP, not before
  bool parallel = false;     // attention and MLP read the same stream, and are added at once
  bool gated = true;         // silu(gate) * up, else an activation of one product
  std::string activation = "gelu";  // gelu | relu, when not gated
  bool qkv_bias = false, o_bias = false, mlp_bias = false, head_bias = false;
  std::string qk_norm = "none";  // none | head | full
  int sliding_window = 0, full_attention_every = 0;
  bool sinks = false;           // a logit per head
  int positions = 0;            // rows of learned positions
  bool embedding_norm = false;  // right after the embedding

  int experts = 0, top_k = 0, expert_ffn = 0, shared_experts = 0, shared_ffn = 0;
  int dense_layers = 0, moe_every = 1;
  bool router_bias = false, shared_gate = false;
  bool mtp = false;  // a layer that predicts the token after next, with embedding and head

  // Multi-head latent attention, when kv_lora > 0.
  int q_lora = 0, kv_lora = 0, qk_nope = 0, qk_rope = 0, v_dim = 0;

  bool latent() const { return kv_lora > 0; }
  int SharedWidth() const { return shared_ffn > 0 ? shared_ffn : shared_experts * expert_ffn; }
  int ExpertLayers() const;  // layers with experts
  double Norm(double width) const;
  double Attention() const;  // parameters of one layer, without its norms
  double DenseMlp() const { return Mlp(ffn); }
  double Mlp(double width) const;
  double Router() const;
  double Experts() const { return experts * Mlp(expert_ffn); }
  double ActiveExperts() const { return top_k * Mlp(expert_ffn); }
  double Shared() const;
  double Parameters() const { return Total(Experts()); }
  double ActiveParameters() const { return Total(ActiveExperts()); }
  double AttentionWidth() const;
  // Of all pairs of a query and an earlier key, averaged over the layers: those in the window.
  double AttentionShare(double sequence) const;

 private:
  double Total(double experts_of_a_layer) const;
};

class SHARDLAB_EXPORT Transformer : public Model {
 public:
  explicit Transformer(std::string family);  // the name that diagnostics use
  ~Transformer() override;
  void Init(const InitContext& context) override;
  absl::Status Describe(ProgramBuilder& program, const ModelRequest& request) const override;

  const TransformerShape& shape() const { return shape_; }

 protected:
  // Groups of parameters, for a plugin's Visit.
  void VisitDimensions(ParameterVisitor& v, const char* ffn);
  void VisitAttention(ParameterVisitor& v);  // biases, norms of queries and keys, windows
  void VisitBlock(ParameterVisitor& v);      // which norms, where, and whether in parallel
  void VisitEnds(ParameterVisitor& v);       // learned positions, a norm, a bias of the head
  void VisitExperts(ParameterVisitor& v);
  void VisitLatentAttention(ParameterVisitor& v);

  TransformerShape shape_;

 private:
  void ReadPreset(const InitContext& context);
  void Check(const InitContext& context) const;
  void CheckExperts(const InitContext& context) const;

  std::string family_, preset_, name_, source_;
};

}  // namespace shardlab
