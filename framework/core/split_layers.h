#pragma once
// Which layers each stage of a plan holds: as the user states, or as many on each. A split is kept
// once, with how many layers of each class its stages hold.
//
//   LayerSplitter splitter(composition, request, &splits, &diagnostics);
//   if (const auto split = splitter.Split()) plan.split = *split;

#include <cstdint>
#include <optional>
#include <vector>

#include "core/make_plan.h"

namespace shardlab {

class LayerSplitter {
 public:
  LayerSplitter(const Composition& composition, const PlanRequest& request,
                std::vector<LayerSplit>* splits, Diagnostics* diagnostics)
      : c_(composition), request_(request), splits_(splits), diagnostics_(*diagnostics) {}

  int layers() const;  // of the model
  int stages() const;
  // The index of the split. Nothing with a diagnostic, or where stages are balanced by what they
  // take, which is not known yet.
  std::optional<std::int32_t> Split();
  // The index of this split, one number for each stage.
  std::int32_t Keep(std::vector<int> split);

 private:
  bool Stated(int layers, int stages);
  void Uneven(int layers, int ends);
  std::vector<double> CountClasses(const std::vector<int>& split) const;
  bool EndsApart() const;
  int OnRank(std::size_t stage, int layer) const;

  const Composition& c_;
  const PlanRequest& request_;
  std::vector<LayerSplit>* splits_;
  Diagnostics& diagnostics_;
};

}  // namespace shardlab
