#include "core/split_layers.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab {
namespace {

// Of each stage the first that holds the same.
std::vector<std::int32_t> Alike(const std::vector<double>& counts, std::size_t stages) {
  const auto classes =
      static_cast<std::ptrdiff_t>(counts.size() / std::max<std::size_t>(1, stages));
  const auto at = [&](std::size_t stage) {
    return counts.begin() + static_cast<std::ptrdiff_t>(stage) * classes;
  };
  std::vector<std::int32_t> alike(stages);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    // Stages that are alike stand together in most splits: the one before is asked first.
    const std::size_t before = stage > 0 ? static_cast<std::size_t>(alike[stage - 1]) : 0;
    std::size_t first = stage > 0 && std::equal(at(stage), at(stage + 1), at(before)) ? before : 0;
    while (!std::equal(at(stage), at(stage + 1), at(first))) ++first;
    alike[stage] = static_cast<std::int32_t>(first);
  }
  return alike;
}

}  // namespace

int LayerSplitter::layers() const {
  int layers = 0;
  for (const LayerClass& row : c_.edited.program.classes) {
    if (row.position == StagePosition::kLayer && !row.copy_of.valid()) layers += row.repeat;
  }
  return layers;
}

int LayerSplitter::stages() const {
  const ScheduleShape shape{request_.pipeline, request_.chunks, 1};
  return request_.pipeline == 1 || c_.schedule == nullptr ? request_.pipeline * request_.chunks
                                                          : c_.schedule->Stages(shape);
}

std::optional<std::int32_t> LayerSplitter::Split() {
  const int of_model = layers(), parts = stages();
  if (!request_.layers.empty()) {
    if (!Stated(of_model, parts)) return std::nullopt;
    return Keep(request_.layers);
  }
  if (request_.balance != Balance::kEven) {
    if (request_.count_ends) {
      diagnostics_.Error("schedule.count_ends", request_.count_ends_place,
                         "count_ends is a rule of balance = \"even\"; time and memory know what "
                         "embedding and head take",
                         "leave count_ends out");
    }
    return std::nullopt;
  }
  const int ends = request_.count_ends ? 2 : 0;
  if ((of_model + ends) % parts != 0 ||
      (of_model + ends) / parts < (parts == 1 ? ends : ends / 2)) {
    Uneven(of_model, ends);
    return std::nullopt;
  }
  std::vector<int> split(static_cast<std::size_t>(parts), (of_model + ends) / parts);
  split.front() -= ends / 2;
  split.back() -= ends / 2;
  return Keep(std::move(split));
}

bool LayerSplitter::Stated(int layers, int stages) {
  const std::vector<int>& split = request_.layers;
  const long long sum = std::accumulate(split.begin(), split.end(), 0LL);
  const bool alone = request_.balance == Balance::kEven && !request_.count_ends;
  if (!alone) {
    diagnostics_.Error("schedule.layers", request_.layers_place,
                       "layers says the split already; balance and count_ends would choose one",
                       "leave out either");
  }
  if (split.size() != static_cast<std::size_t>(stages)) {
    diagnostics_.Error(
        "schedule.layers", request_.layers_place,
        absl::StrCat("layers has ", split.size(), " numbers for ", stages, " stages"),
        absl::StrCat("write ", stages, " numbers whose sum is ", layers));
    return false;
  }
  if (sum != layers || *std::min_element(split.begin(), split.end()) < 0) {
    diagnostics_.Error(
        "schedule.layers", request_.layers_place,
        absl::StrCat("layers add up to ", sum, ", the model has ", layers),
        absl::StrCat("write ", stages, " numbers, none negative, whose sum is ", layers));
    return false;
  }
  return alone;
}

// Legal degrees are those whose stages divide what is to be spread, and that the schedule does not
// refuse with every number of micro-batches that the batch may come to.
void LayerSplitter::Uneven(int layers, int ends) {
  std::vector<int> legal;
  const std::vector<int> batches = Divisors(request_.global_batch_size);
  for (const int parts : Divisors(layers + ends)) {
    const int degree =
        parts * std::max(1, request_.pipeline * request_.chunks / std::max(1, stages()));
    if (degree % request_.chunks != 0) continue;
    const int ranks = degree / request_.chunks;
    if (ranks == 1 || c_.schedule == nullptr ||
        std::any_of(batches.begin(), batches.end(), [&](int micro_batches) {
          return c_.schedule->Refusal({ranks, request_.chunks, micro_batches}).empty();
        }))
      legal.push_back(ranks);
  }
  const std::string chunks =
      request_.chunks > 1 ? absl::StrCat(" x ", request_.chunks, " chunks") : "";
  const std::string counted = ends > 0 ? " and two ends" : "";
  diagnostics_.Error("schedule.degree", request_.pipeline_place,
                     absl::StrCat(layers, " layers", counted, " do not divide evenly by ",
                                  request_.pipeline, " pipeline ranks", chunks),
                     legal.empty() ? absl::StrCat("no degree is legal with ", request_.chunks,
                                                  " chunks: chunks must divide ", layers + ends,
                                                  "; or write layers = [...] for each stage")
                                   : absl::StrCat("legal with this model: ", Enumerate(legal, "or"),
                                                  "; or write layers = [...] for each stage"));
}

std::int32_t LayerSplitter::Keep(std::vector<int> split) {
  // The same numbers of layers may be other classes: where a rank holds both ends, or so many
  // layers of each rank are treated differently.
  const auto& classes = c_.edited.program.classes;
  const bool by_shape = std::any_of(classes.begin(), classes.end(), [](const LayerClass& row) {
    return row.both_ends.valid() || row.per_rank > 0;
  });
  std::vector<double> counts;
  if (by_shape) counts = CountClasses(split);
  const auto known = std::find_if(splits_->begin(), splits_->end(), [&](const LayerSplit& s) {
    return s.layers == split && (!by_shape || s.counts == counts);
  });
  const auto index = static_cast<std::int32_t>(known - splits_->begin());
  if (known == splits_->end()) {
    if (!by_shape) counts = CountClasses(split);
    std::vector<std::int32_t> alike = Alike(counts, split.size());
    splits_->push_back({std::move(split), std::move(counts), std::move(alike)});
  }
  return index;
}

// A stage holds a run of the whole sequence of layers.
std::vector<double> LayerSplitter::CountClasses(const std::vector<int>& split) const {
  const Program& program = c_.edited.program;
  const std::vector<LayerAt> layers = program.LayersInOrder();
  std::vector<double> counts(split.size() * program.classes.size(), 0);
  double* of_stage = counts.data();
  std::size_t next = 0;
  const bool ends_apart =
      std::any_of(program.classes.begin(), program.classes.end(),
                  [](const LayerClass& row) { return row.both_ends.valid(); }) &&
      EndsApart();
  for (std::size_t stage = 0; stage < split.size(); ++stage) {
    for (std::size_t c = 0; c < program.classes.size(); ++c) {
      const StagePosition position = program.classes[c].position;
      if (program.classes[c].both_ends.valid() && !ends_apart) continue;
      if ((position == StagePosition::kFirst && stage == 0) ||
          (position == StagePosition::kLast && stage + 1 == split.size()))
        of_stage[c] = 1;
      if (position == StagePosition::kSpread) of_stage[c] = 1.0 / static_cast<double>(split.size());
    }
    for (int i = 0; i < split[stage]; ++i, ++next)
      of_stage[program.TreatedBy(layers[next], OnRank(stage, i)).index()] += 1;
    of_stage += program.classes.size();
  }
  return counts;
}

// The first and the last stage are on different pipeline ranks.
bool LayerSplitter::EndsApart() const {
  if (request_.pipeline == 1 || c_.schedule == nullptr) return false;
  const ScheduleShape shape{request_.pipeline, request_.chunks, 1};
  for (int rank = 0; rank < request_.pipeline; ++rank) {
    bool first = false, last = false;
    for (int chunk = 0; chunk < request_.chunks; ++chunk) {
      const int stage = c_.schedule->StageOf(shape, rank, chunk);
      first |= stage == 0;
      last |= stage + 1 == c_.schedule->Stages(shape);
    }
    if (first && last) return false;
  }
  return true;
}

// A rank's share of layers is dealt out to its chunks in turn: to the first layer of each, then to
// the second.
int LayerSplitter::OnRank(std::size_t stage, int layer) const {
  return layer * request_.chunks + static_cast<int>(stage) / request_.pipeline;
}

}  // namespace shardlab
