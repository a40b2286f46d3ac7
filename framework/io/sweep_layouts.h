#pragma once
// The compositions of a sweep. Combinations that differ only in numbers of the plan (micro-batch,
// batch, pipeline degree, chunks, degrees that plugins offer to a search) share one, a layout, and
// the constant part of their rows. A value of such a key is first read the long way: what no plugin
// takes is never put into a plan.
//
//   SweepLayouts layouts(sweep, &orders);
//   if (SweepLayout* layout = layouts.Of(combination, values)) ... layout->MakePlan(&diagnostics)

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/order.h"
#include "core/summarize.h"
#include "io/compose_memory.h"
#include "io/compose_scenario.h"
#include "io/sweep_row.h"
#include "io/sweep_run.h"

namespace shardlab {

// Orders that all threads of a sweep share: whole ones, which a search has no need of. Those of
// large shapes take megabytes: beyond a limit all are forgotten.
class SweepOrders final {
 public:
  using Pointer = std::shared_ptr<const CompiledOrder>;
  // The number of a schedule with its parameters.
  int IndexOf(const std::string& schedule);
  // Null where the schedule gives no possible order.
  Pointer Of(const Schedule& schedule, int index, const ScheduleShape& shape);
  // What the compositions of the sweep have in common.
  ComposeMemory& compositions() { return compositions_; }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;
  std::mutex mutex_;
  std::map<std::string, int> index_;
  std::map<std::tuple<int, int, int, int>, Pointer> orders_;
  std::size_t bytes_ = 0;
  ComposeMemory compositions_;
};

// Constants with their sources, each once.
class SweepConstants final {
 public:
  std::vector<int> Add(const nlohmann::ordered_json& provenance);
  const nlohmann::ordered_json& at(int id) const { return all_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return all_.size(); }

 private:
  std::vector<nlohmann::ordered_json> all_;
  std::map<std::string, std::vector<int>> ids_;  // by name
};

class SweepLayout final {
 public:
  // `stated_chunks`: the scenario says how many chunks a rank has.
  SweepLayout(ComposedScenario composed, bool stated_chunks, SweepOrders* orders,
              SweepConstants* constants);

  const Composition& composition() const { return *composed_.composition; }
  ComposedScenario& composed() { return composed_; }
  // The plan of composed().request; nothing, with diagnostics, where it is illegal.
  std::optional<Plan> MakePlan(Diagnostics* diagnostics);
  // False where the schedule gives no order.
  bool Evaluate(const Plan& plan);
  const Summary& summary() const { return summary_; }  // of the plan evaluated last
  // Its row: the scalars of plan, memory, time and throughput.
  Cells Row(const Plan& plan, SharedNames* names);
  // The value in a row, made before, under a name; null where there is none.
  static const nlohmann::ordered_json* Find(const Cells& row, const std::string& name);
  const std::vector<int>& constants(bool pipelined);  // of its plans with several pipeline ranks

 private:
  void Shape(const Plan& plan, SharedNames* names);

  int DefaultChunks() const;

  ComposedScenario composed_;
  bool default_chunks_ = false;  // they are the schedule's own
  SweepOrders* orders_;
  int schedule_ = 0;
  Workspace workspace_;
  Summary summary_;
  SweepConstants* all_constants_;
  std::array<std::optional<std::vector<int>>, 2> constants_;
  Cells::Names names_;                       // null: no plan yet
  std::vector<nlohmann::ordered_json> row_;  // what no plan changes is in it
  std::vector<int> slots_;  // of each number of a plan, into row_; -1: strategies say otherwise
  std::size_t behind_plan_ = 0;
};

class SweepLayouts final {
 public:
  SweepLayouts(const Sweep& sweep, SweepOrders* orders);

  // The layout with the combination's numbers set, or null: it has to be planned alone. `steps`
  // and `values`: of the combination, per group and per key.
  SweepLayout* Of(const std::vector<int>& steps, const std::vector<const Value*>& values);
  SweepConstants& constants() { return constants_; }
  // The number that a key has in plans, where it is one that layouts do not depend on.
  bool IsPlanNumber(const std::string& key) const;

 private:
  enum class Number : std::uint8_t {
    kNone,
    kMicroBatch,
    kGlobalBatch,
    kPipeline,
    kChunks,
    kDegree
  };
  struct Key {
    std::size_t group = 0, member = 0;
    Number number = Number::kNone;
    std::string axis;          // of kDegree
    std::vector<bool> proven;  // [step]: a composition has read it
  };
  struct Entry {
    std::vector<int> signature;
    std::unique_ptr<SweepLayout> layout;  // null: it has mistakes
  };

  std::unique_ptr<SweepLayout> Compose(const std::vector<int>& steps,
                                       const std::vector<const Value*>& values);
  void Set(const std::vector<const Value*>& values, ComposedScenario* composed) const;

  const Sweep& sweep_;
  SweepOrders* orders_;
  SweepConstants constants_;
  std::vector<const SweptKey*> swept_;
  std::vector<Key> keys_;    // as swept_
  std::list<Entry> recent_;  // the last used first
  std::map<std::vector<int>, std::list<Entry>::iterator> known_;
};

}  // namespace shardlab
