#pragma once
// What every part of Explain says things with: whose row it is, how large in words, on how many
// layers of a rank. Internal to explain.cpp and the parts beside it.
//
//   entry.formula = absl::StrCat(LayersText(n), SizeText(w, w.home), " x 2 B");

#include <cstddef>
#include <string>
#include <vector>

#include "core/composition.h"
#include "core/evaluate.h"
#include "core/order.h"

namespace shardlab {

// What is explained; all outlive it. The workspace holds the costs of the rank in question.
struct ExplainInput {
  const Composition& composition;
  const Plan& plan;
  const CompiledOrder* order;
  Workspace& workspace;
};

class ExplainWords {
 protected:
  explicit ExplainWords(const ExplainInput& input)
      : c_(input.composition),
        program_(input.composition.edited.program),
        plan_(input.plan),
        order_(input.order),
        w_(input.workspace) {}

  static std::size_t Size(int n) { return static_cast<std::size_t>(n); }
  std::vector<int> StagesOf(int rank) const;
  // Micro-batches that each stage of a rank sees.
  int Passes() const { return plan_.micro_batches / w_.copies; }
  double LayersOnRank(int rank, std::size_t layer_class) const;
  std::string Author(std::int16_t author) const;
  std::string RecomputeAuthor(std::size_t layer_class) const;
  // "hidden 8192 x ffn 28672/8": local sizes, cut by the degrees.
  std::string SizeText(const Tensor& tensor, const Placement& at) const;
  std::string FlatText(const Placement& at) const;
  static std::string LayersText(double n);

  const Composition& c_;
  const Program& program_;
  const Plan& plan_;
  const CompiledOrder* const order_;
  Workspace& w_;
};

}  // namespace shardlab
