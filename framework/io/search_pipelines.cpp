#include "io/search_pipelines.h"

#include <algorithm>

namespace shardlab {
namespace {

class PipelineMaker {
 public:
  explicit PipelineMaker(const PipelineRule& rule) : rule_(rule) {}

  std::vector<Pipeline> Run() {
    for (const TriedSchedule& tried : rule_.schedules) {
      const std::vector<int> chunks = ChunksOf(tried);
      for (const int degree : rule_.degrees) {
        if (degree == 1) {
          // The schedule is not asked.
          if (&tried == &rule_.schedules[0]) Balanced(tried, 1, 1);
          continue;
        }
        for (const int v : chunks) Balanced(tried, degree, v);
      }
    }
    File();
    return std::move(pipelines_);
  }

 private:
  static int ByItself(const TriedSchedule& tried) {
    return tried.schedule != nullptr ? tried.schedule->DefaultChunks() : 1;
  }

  std::vector<int> ChunksOf(const TriedSchedule& tried) const {
    if (rule_.by_themselves) return {ByItself(tried)};
    if (rule_.chunks) {
      // Of several schedules those that have one number of chunks keep it.
      const bool stated = rule_.schedules.size() == 1 || tried.many_chunks.value_or(true);
      return stated ? *rule_.chunks : std::vector<int>{ByItself(tried)};
    }
    std::vector<int> chunks;
    if (tried.many_chunks.value_or(false)) {
      for (int v = 2; v <= rule_.layers; ++v) chunks.push_back(v);
    } else {
      chunks.push_back(ByItself(tried));
    }
    if (tried.also_chunks > 0) chunks.push_back(tried.also_chunks);
    return chunks;
  }

  static int Stages(const TriedSchedule& tried, int degree, int chunks) {
    if (degree == 1 || tried.schedule == nullptr) return degree * chunks;
    return tried.schedule->Stages({degree, chunks, 1});
  }

  void Balanced(const TriedSchedule& tried, int degree, int chunks) {
    const int stages = Stages(tried, degree, chunks);
    if (stages < 1) return;
    Pipeline pipeline{tried.name, degree, chunks, false, false, 0, 0};
    const auto layers = [&](int all) { return all / stages * chunks; };
    if (rule_.layers % stages == 0) {
      pipeline.layers = layers(rule_.layers);
    } else if ((rule_.layers + 2) % stages == 0) {
      pipeline.count_ends = true;
      pipeline.layers = layers(rule_.layers + 2);
    } else {
      return;
    }
    if (std::find(pipelines_.begin(), pipelines_.end(), pipeline) == pipelines_.end())
      pipelines_.push_back(pipeline);
  }

  // Where the file states no split, or the balanced one, the shape may be there already.
  void File() {
    if (!rule_.file || rule_.file->degree == 1) return;
    const auto tried = std::find_if(rule_.schedules.begin(), rule_.schedules.end(),
                                    [&](const auto& s) { return s.name == rule_.file->schedule; });
    if (tried == rule_.schedules.end()) return;
    const int degree = rule_.file->degree, chunks = rule_.file->chunks;
    const FileSplit& split = rule_.file_split;
    if (split.settings.empty()) return Balanced(*tried, degree, chunks);
    const int stages = Stages(*tried, degree, chunks);
    const auto same = [&](const Pipeline& p) {
      return p.schedule == tried->name && p.degree == degree && p.chunks == chunks &&
             IsBalanced(p, stages);
    };
    if (std::any_of(pipelines_.begin(), pipelines_.end(), same)) return;
    Pipeline pipeline{tried->name, degree, chunks, false, true, 0, 0};
    pipeline.layers = (rule_.layers + stages - 1) / std::max(1, stages) * chunks;
    if (split.layers.size() == static_cast<std::size_t>(std::max(0, stages)))
      pipeline.layers = LargestRank(*tried, degree, chunks);
    if (rule_.only_file_split) pipelines_.clear();
    pipelines_.push_back(pipeline);
  }

  // Whether the file's split is the one of a shape.
  bool IsBalanced(const Pipeline& p, int stages) const {
    const FileSplit& split = rule_.file_split;
    if (split.layers.empty())
      return split.balance == Balance::kEven && split.count_ends == p.count_ends;
    if (split.balance != Balance::kEven || split.count_ends) return false;  // a mistake
    const int ends = p.count_ends ? 2 : 0;
    std::vector<int> even(static_cast<std::size_t>(stages), (rule_.layers + ends) / stages);
    even.front() -= ends / 2;
    even.back() -= ends / 2;
    return split.layers == even;
  }

  int LargestRank(const TriedSchedule& tried, int degree, int chunks) const {
    const std::vector<int>& layers = rule_.file_split.layers;
    int largest = 0;
    for (int rank = 0; rank < degree; ++rank) {
      int held = 0;
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = tried.schedule != nullptr
                              ? tried.schedule->StageOf({degree, chunks, 1}, rank, chunk)
                              : chunk * degree + rank;
        if (stage >= 0 && static_cast<std::size_t>(stage) < layers.size())
          held += layers[static_cast<std::size_t>(stage)];
      }
      largest = std::max(largest, held);
    }
    return largest;
  }

  const PipelineRule& rule_;
  std::vector<Pipeline> pipelines_;
};

}  // namespace

std::vector<Pipeline> PipelinesOf(const PipelineRule& rule) { return PipelineMaker(rule).Run(); }

}  // namespace shardlab
