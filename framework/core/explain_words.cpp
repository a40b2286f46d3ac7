#include "core/explain_words.h"

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab {

std::vector<int> ExplainWords::StagesOf(int rank) const {
  std::vector<int> stages;
  for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
    const std::size_t slot = Size(rank * plan_.chunks + chunk);
    stages.push_back(order_ == nullptr ? static_cast<int>(slot) : order_->stage_of[slot]);
  }
  return stages;
}

double ExplainWords::LayersOnRank(int rank, std::size_t layer_class) const {
  double n = 0;
  for (const int stage : StagesOf(rank)) n += LayersOn(c_, plan_, stage, layer_class);
  return n;
}

std::string ExplainWords::Author(std::int16_t author) const {
  return author < 0 ? program_.facts.name : program_.authors[Size(author)];
}

std::string ExplainWords::SizeText(const Tensor& tensor, const Placement& at) const {
  std::string out = tensor.scale == 1 ? std::string() : ShortNumber(tensor.scale);
  for (const DimensionId dim : tensor.dims) {
    const Dimension& row = program_.dimension(dim);
    const int cut = plan_.Size(at.CutOf(dim));
    // What is said of the batch is one rank's micro-batch, however many ranks share a step.
    const bool batch = row.kind == DimensionKind::kBatch;
    absl::StrAppend(&out, out.empty() ? "" : " x ", row.name, " ",
                    batch ? plan_.micro_batch_size : row.size);
    if (cut > 1 && !batch) absl::StrAppend(&out, "/", cut);
  }
  return out.empty() ? std::string("1") : out;
}

std::string ExplainWords::FlatText(const Placement& at) const {
  const int flat = plan_.Size(at.Flat());
  return flat > 1 ? absl::StrCat(" / ", flat, " (", c_.edited.mesh.NameOf(at.Flat()), ")") : "";
}

std::string ExplainWords::LayersText(double n) {
  return n == 1 ? "" : absl::StrCat(ShortNumber(n), " layers x ");
}

std::string ExplainWords::RecomputeAuthor(std::size_t layer_class) const {
  for (const Op& op : program_.ops) {
    if (op.layer_class.index() == layer_class && op.recompute_author >= 0)
      return Author(op.recompute_author);
  }
  return Author(-1);
}

}  // namespace shardlab
