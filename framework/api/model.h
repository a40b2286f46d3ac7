#pragma once
// A model: from parameters (dimensions, a preset) to a Program of uncut rows. It knows no mesh and
// no machine.
//
//   class Llama final : public Model {
//     absl::Status Describe(ProgramBuilder& program, const ModelRequest& request) const override;
//   };
//
// Contract: the same object gives the same rows each time; the sum of the parameter tensors'
// elements over all layers is facts.parameters, to the element.

#include "absl/status/status.h"
#include "api/plugin.h"
#include "api/program_builder.h"

namespace shardlab {

struct ModelRequest {
  bool coarse = false;  // the classroom program: one attention and one MLP lump a layer
  double sequence_length = 0;
  double dropout = 0;     // above 0, masks are kept for the backward pass
  double loss_bytes = 0;  // that the loss holds for each logit beside the logits themselves
  // Routing weights travel with the tokens and multiply what goes into an expert's last product;
  // else what comes back, and each expert's output is kept.
  bool weights_inside_experts = false;
  bool eager_attention = false;  // scores of all pairs lie in memory; else a fused kernel
};

class SHARDLAB_EXPORT Model : public Plugin {
 public:
  static constexpr const char* kKind = "model";
  static constexpr int kInterfaceVersion = 1;
  ~Model() override;
  virtual absl::Status Describe(ProgramBuilder& program, const ModelRequest& request) const = 0;
};

}  // namespace shardlab
