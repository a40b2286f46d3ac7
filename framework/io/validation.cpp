#include "io/validation.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/plan_document.h"

namespace shardlab {
namespace {

double Bytes(const RankMemory& memory, std::initializer_list<Account> accounts) {
  double sum = 0;
  for (const Account account : accounts) sum += memory.bytes[static_cast<std::size_t>(account)];
  return sum;
}

double State(const RankMemory& m) {
  return Bytes(m, {Account::kParameters, Account::kGradients, Account::kOptimizer});
}

double Read(const RankMemory& m, const std::string& of) {
  if (of == "resident") return State(m);
  double bytes =
      State(m) + Bytes(m, {Account::kActivations, Account::kGathered, Account::kTransient});
  if (of == "allocated") return bytes;
  bytes += Bytes(m, {Account::kFragmentation});
  return of == "reserved" ? bytes : bytes + Bytes(m, {Account::kOutsideAllocator});
}

std::size_t JudgedRank(const Explanation& x, const MemoryReading& reading, const std::string& of) {
  if (reading.rank == "first") return 0;
  if (reading.rank == "last") return x.ranks.size() - 1;
  std::size_t most = 0;
  for (std::size_t r = 1; r < x.ranks.size(); ++r) {
    if (Read(x.ranks[r].memory, of) > Read(x.ranks[most].memory, of)) most = r;
  }
  return most;
}

// Products of the step: 6 FLOPs a parameter and token without the input embedding, attention's
// causal half, and the forward pass of the blocks once more where they are replayed whole
// (Narayanan et al., arXiv 2104.04473, appendix; the head is not replayed).
double HardwareFlops(const PlannedScenario& planned, const Measurement& row) {
  const Composition& c = *planned.composed.composition;
  const ModelFacts& f = c.edited.program.facts;
  const nlohmann::ordered_json& model = planned.composed.resolved["model"];
  const double head =
      model.value("vocabulary", 0.0) * static_cast<double>(model.value("hidden", 0.0));
  const double blocks = std::max(0.0, f.active_parameters - f.embedding_parameters - head);
  const double attention = f.layers * f.attention_width * c.training.sequence_length;
  const double replays = row.Text("recompute") == "full" ? 4.0 / 3 : 1;
  const double tokens = c.training.global_batch_size * c.training.sequence_length;
  return tokens * (replays * 6 * (blocks + attention) + 6 * head);
}

double LinkSeconds(const PlannedScenario& planned) {
  const Machine& machine = planned.composed.composition->hardware->machine();
  double seconds = 0;
  for (const TransferEntry& t : planned.explanation.transfers) {
    for (const Tier& tier : machine.tiers) {
      if (tier.name == t.tier)
        seconds += t.bytes / (tier.bandwidth.value() * std::max(1, tier.ports));
    }
  }
  return seconds;
}

RowPrediction Predict(const PlannedScenario& planned, const RowScenario& row) {
  const Composition& c = *planned.composed.composition;
  const Explanation& x = planned.explanation;
  const Machine& machine = c.hardware->machine();
  const Measurement& m = row.filled;
  RowPrediction p;
  p.step = x.evaluation.step;
  p.fits = x.evaluation.fits;
  const std::size_t rank = JudgedRank(x, row.memory, row.memory.of);
  const RankMemory& memory = x.ranks[rank].memory;
  p.memory = Read(memory, row.memory.of);
  p.hardware_flops = HardwareFlops(planned, m);
  p.step_work = p.hardware_flops / (machine.devices * machine.peak.value());
  // The optimizer reads its state and the gradients and writes state and weights, once each.
  const double optimizer = 2 * State(memory) / machine.memory_bandwidth.value();
  p.step_roofline = p.step_work + optimizer + LinkSeconds(planned);
  p.memory_work = State(memory);
  // 34 s b h bytes a layer and micro-batch in flight (Korthikanti et al., arXiv 2205.05198), or
  // 2 s b h where blocks are replayed whole.
  const double tensor = m.Number("tp").value_or(1), pipeline = c.plan.pipeline;
  const double tokens =
      c.training.sequence_length * c.plan.micro_batch_size / m.Number("cp").value_or(1);
  const double kept = m.Text("recompute") == "full" ? 2 : 34;
  p.memory_roofline = p.memory_work + memory.in_flight *
                                          (m.Number("layers").value_or(0) / pipeline) * kept *
                                          tokens * m.Number("hidden").value_or(0) / tensor;
  p.parameters = c.edited.program.facts.parameters;
  p.sharing = DegreeOf(c, c.plan, AxisRole::kData) * DegreeOf(c, c.plan, AxisRole::kContext);
  const bool cut = m.Text("zero_stage") == "3";
  p.rank_parameters =
      cut ? c.edited.program.facts.parameters / tensor / pipeline
          // Beside the weights may lie copies of them: the gradients tell.
          : Bytes(memory, {Account::kGradients}) / BytesOf(c.precision, DtypeSlot::kGradients);
  return p;
}

// "the reason" of a scenario that was refused: what its first error says.
std::string FirstError(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::kError) return d.message;
  }
  return "no plan";
}

std::optional<double> PrintedBytes(const RowScenario& row, const char* column = "mem_gb") {
  const std::optional<double> printed = row.filled.Number(column);
  if (!printed || *printed <= 0) return std::nullopt;
  return *printed * (row.memory.unit == "GB" ? 1e9 : 1024.0 * 1024 * 1024);
}

void Measured(ValidatedRow* row) {
  const Measurement& m = row->scenario.filled;
  const auto step = m.Number("step_s"), rate = m.Number("tokens_per_s_per_gpu");
  if (step) {
    row->measured_step = step;
  } else if (rate && *rate > 0) {
    row->step_derived = true;
    row->measured_step = m.Number("global_batch").value_or(0) * m.Number("seq").value_or(0) /
                         (m.Number("gpus").value_or(1) * *rate);
  }
  row->measured_memory = PrintedBytes(row->scenario);
  row->skip_step = row->measured_step ? row->scenario.skip_step : "";
  row->skip_memory = row->measured_memory ? row->scenario.skip_memory : "";
  // No machine beats its peak: batch, layout or time is not what is printed.
  if (row->measured_step && row->skip_step.empty() &&
      row->prediction->step_work > *row->measured_step)
    row->skip_step = "as printed, faster than the devices' peak";
  if (!row->skip_step.empty()) row->measured_step.reset();
  if (!row->skip_memory.empty()) row->measured_memory.reset();
}

double RanksOfReplica(const Measurement& m) {
  return m.Number("tp").value_or(1) * m.Number("pp").value_or(1) * m.Number("cp").value_or(1);
}

ValidatedRow ValidateRow(const PluginRegistry& registry, const Measurement& measurement,
                         const MeasurementRules& rules) {
  ValidatedRow row;
  row.scenario = ScenarioOf(measurement, rules);
  const Measurement& m = row.scenario.filled;
  row.skip = row.scenario.skip;
  if (row.skip.empty() && !m.Number("step_s") && !m.Number("tokens_per_s_per_gpu") &&
      !m.Number("mem_gb"))
    row.skip = "neither step time nor memory is stated";
  // Some count expert ranks as replicas of their own, some as part of the data ranks.
  if (const auto dp = m.Number("dp"), gpus = m.Number("gpus");
      row.skip.empty() && dp && gpus && *dp * RanksOfReplica(m) != *gpus &&
      *dp * RanksOfReplica(m) * m.Number("ep").value_or(1) != *gpus)
    row.skip = "gpus are not tp x pp x cp x dp";
  if (!row.skip.empty()) return row;
  const Scenario scenario =
      ScenarioFromText(row.scenario.toml, measurement.id, {}, row.diagnostics);
  PlannedScenario planned;
  if (!row.diagnostics.HasErrors()) planned = PlanScenario(registry, scenario, &row.diagnostics);
  if (planned.composed.composition == nullptr) {
    row.skip = FirstError(row.diagnostics);
    return row;
  }
  row.prediction = Predict(planned, row.scenario);
  Measured(&row);
  return row;
}

// One of the two quantities of a row.
struct View {
  std::optional<double> ValidatedRow::*measured;
  double RowPrediction::*predicted, RowPrediction::*work, RowPrediction::*roofline;
};
constexpr View kStep{&ValidatedRow::measured_step, &RowPrediction::step, &RowPrediction::step_work,
                     &RowPrediction::step_roofline};
constexpr View kMemory{&ValidatedRow::measured_memory, &RowPrediction::memory,
                       &RowPrediction::memory_work, &RowPrediction::memory_roofline};

std::string GroupKey(const Measurement& m) {
  std::string key;
  for (const char* column : {"model", "layers", "hidden", "heads", "seq", "hardware", "gpus",
                             "global_batch", "precision", "recompute"})
    absl::StrAppend(&key, m.Text(column), "|");
  return key;
}

class ErrorTable final {
 public:
  ErrorTable(const std::vector<ValidatedRow>& rows, const View& view) : rows_(rows), view_(view) {}

  QuantityErrors Run(const MeasurementRules& rules) const {
    QuantityErrors out;
    std::vector<std::size_t> all;
    std::map<std::string, std::size_t> at;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].prediction || !(rows_[i].*view_.measured)) continue;
      all.push_back(i);
      const std::string& name = rows_[i].scenario.source;
      const auto [found, fresh] = at.emplace(name, out.sources.size());
      if (fresh)
        out.sources.push_back({name, TitleOf(name, rules), {}, {}, {}, {}, 0, 0, 0, 0, {}});
      out.sources[found->second].rows.push_back(i);
    }
    out.constant = BestFactor(Of(all, view_.work));
    for (SourceErrors& source : out.sources) Fill(out.constant, &source);
    return out;
  }

 private:
  static std::string TitleOf(const std::string& name, const MeasurementRules& rules) {
    for (const MeasurementSource& source : rules.sources) {
      if (source.name == name) return source.title;
    }
    return "";
  }

  std::vector<Judged> Of(const std::vector<std::size_t>& rows, double RowPrediction::*what) const {
    std::vector<Judged> judged;
    judged.reserve(rows.size());
    for (const std::size_t i : rows) {
      judged.push_back(
          {rows_[i].scenario.filled.id, *(rows_[i].*view_.measured), (*rows_[i].prediction).*what});
    }
    return judged;
  }

  void Fill(double constant, SourceErrors* s) const {
    s->errors = Summarise(Of(s->rows, view_.predicted));
    std::array<std::vector<std::size_t>, 2> halves;
    std::map<std::string, std::vector<std::size_t>> groups;
    for (const std::size_t i : s->rows) {
      const Measurement& m = rows_[i].scenario.filled;
      halves[static_cast<std::size_t>(HalfOf(m.id))].push_back(i);
      groups[GroupKey(m)].push_back(i);
    }
    s->first_half = Summarise(Of(halves[0], view_.predicted));
    s->second_half = Summarise(Of(halves[1], view_.predicted));
    const std::vector<Judged> work = Of(s->rows, view_.work);
    s->constant = MeanAbsoluteError(work, constant);
    s->own_constant = MeanAbsoluteError(work, BestFactor(work));
    s->roofline = MeanAbsoluteError(Of(s->rows, view_.roofline));
    for (const std::size_t h : {0u, 1u}) {
      const std::vector<Judged> here = Of(halves[h], view_.work);
      const double fitted = BestFactor(Of(halves[1 - h], view_.work));
      s->other_half_constant += MeanAbsoluteError(here, fitted) * static_cast<double>(here.size()) /
                                static_cast<double>(work.size());
    }
    std::vector<std::vector<Judged>> judged;
    judged.reserve(groups.size());
    for (const auto& [key, rows] : groups) judged.push_back(Of(rows, view_.predicted));
    s->order = AgreementOf(judged);
  }

  const std::vector<ValidatedRow>& rows_;
  const View& view_;
};

// Runs that differ in nothing that memory depends on but the ranks that share it.
std::string SlopeKey(const Measurement& m) {
  std::string key;
  for (const char* column : {"model", "layers", "hidden", "vocab", "seq", "hardware", "tp", "pp",
                             "vpp", "zero_stage", "micro_batch", "precision", "recompute"})
    absl::StrAppend(&key, m.Text(column), "|");
  return key;
}

// The same run with twice the replicas and twice the global batch.
Measurement Doubled(Measurement m, std::vector<std::string> columns) {
  columns.insert(columns.end(), {"gpus", "dp", "global_batch"});
  for (const std::string& column : columns) {
    const std::optional<double> value = m.Number(column);
    if (value && *value > 1) m.cells[column] = ShortNumber(2 * *value);
  }
  if (m.Number("dp")) m.cells["dp"] = ShortNumber(m.Number("gpus").value_or(1) / RanksOfReplica(m));
  return m;
}

class SlopeChecker {
 public:
  SlopeChecker(const PluginRegistry& registry, const SlopeCheck& check,
               const MeasurementRules& rules)
      : registry_(registry), rules_(rules), result_{check, {}, false} {
    // The row's rules, with the check's account.
    MeasurementRule reading;
    reading.memory = {{"of", check.memory}};
    rules_.rules.push_back(reading);
    for (MeasurementSource& source : rules_.sources) source.rules.push_back(reading);
  }

  SlopeResult Run(const std::vector<ValidatedRow>& rows) {
    std::map<std::string, std::vector<const ValidatedRow*>> groups;
    for (const ValidatedRow& row : rows) {
      if (row.prediction && Matches(result_.check.when, row.scenario.filled))
        groups[SlopeKey(row.scenario.filled)].push_back(&row);
    }
    for (auto& [key, group] : groups) Group(group);
    result_.holds =
        !result_.pairs.empty() &&
        std::all_of(result_.pairs.begin(), result_.pairs.end(), [&](const auto& pair) {
          return pair.predicted >= result_.check.least && pair.predicted <= result_.check.most;
        });
    return std::move(result_);
  }

 private:
  void Group(std::vector<const ValidatedRow*>& group) {
    std::stable_sort(group.begin(), group.end(), [](const auto* a, const auto* b) {
      return a->prediction->sharing < b->prediction->sharing;
    });
    bool alone = true;
    for (std::size_t i = 0; i + 1 < group.size(); ++i) {
      const ValidatedRow &a = *group[i], &b = *group[i + 1];
      if (a.prediction->sharing == b.prediction->sharing) continue;
      alone = false;
      Pair(a, b.scenario.filled, &b);
    }
    if (alone) Pair(*group[0], Doubled(group[0]->scenario.filled, result_.check.doubles), nullptr);
  }

  void Pair(const ValidatedRow& a, const Measurement& other, const ValidatedRow* b) {
    const auto first = ValidateRow(registry_, a.scenario.filled, rules_).prediction;
    const auto second = ValidateRow(registry_, other, rules_).prediction;
    if (!first || !second) return;
    const double per = first->rank_parameters * (1.0 / first->sharing - 1.0 / second->sharing);
    if (per <= 0) return;
    SlopePair pair{a.scenario.filled.id, b == nullptr ? "" : other.id,
                   (first->memory - second->memory) / per, 0};
    const char* column = result_.check.memory == "resident" ? "resident_gb" : "mem_gb";
    const std::optional<double> here = PrintedBytes(a.scenario, column),
                                there =
                                    b == nullptr ? std::nullopt : PrintedBytes(b->scenario, column);
    if (here && there) pair.measured = (*here - *there) / per;
    result_.pairs.push_back(pair);
  }

  const PluginRegistry& registry_;
  MeasurementRules rules_;
  SlopeResult result_;
};

}  // namespace

Validation Validate(const PluginRegistry& registry, const std::vector<Measurement>& measurements,
                    const MeasurementRules& rules) {
  Validation v;
  for (const Measurement& m : measurements) v.rows.push_back(ValidateRow(registry, m, rules));
  v.step = ErrorTable(v.rows, kStep).Run(rules);
  v.memory = ErrorTable(v.rows, kMemory).Run(rules);
  for (const SlopeCheck& check : rules.checks)
    v.checks.push_back(SlopeChecker(registry, check, rules).Run(v.rows));
  return v;
}

}  // namespace shardlab
