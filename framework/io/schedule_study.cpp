#include "io/schedule_study.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "api/order_csv.h"
#include "base/text.h"
#include "io/guarded.h"
#include "io/parameter_io.h"
#include "io/read_file.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

// Beyond this a study takes minutes and gigabytes.
constexpr double kMostEvents = 2e7;

class Student {
 public:
  Student(const PluginRegistry& registry, const ScheduleRequest& request, Diagnostics* diagnostics)
      : registry_(registry), request_(request), diagnostics_(*diagnostics) {}

  std::optional<ScheduleStudy> Run() {
    study_.name = request_.name;
    study_.shape = request_.shape;
    if (!Make()) return std::nullopt;
    ScheduleShape& shape = study_.shape;
    if (!request_.chunks_given) shape.chunks = study_.schedule->DefaultChunks();
    const std::string refusal = study_.schedule->Refusal(shape);
    if (!refusal.empty()) return Fail("schedule.refused", refusal);
    if (3.0 * shape.ranks * shape.chunks * shape.micro_batches > kMostEvents) {
      return Fail("schedule.too_large",
                  absl::StrCat(shape.ranks, " ranks x ", shape.micro_batches,
                               " micro-batches are too many to play"),
                  absl::StrCat("at most ", WithThousands(static_cast<long long>(kMostEvents) / 3),
                               " in all, times the chunks"));
    }
    return Play();
  }

 private:
  std::nullopt_t Fail(const char* code, const std::string& message, const std::string& hint = "") {
    diagnostics_.Error(code, {}, message, hint);
    return std::nullopt;
  }

  // The plugin with its parameters, as a scenario's [schedule] would make it.
  bool Make() {
    absl::StatusOr<std::unique_ptr<Plugin>> made = registry_.Make(Schedule::kKind, request_.name);
    if (!made.ok()) {
      Fail("plugin.unknown", std::string(made.status().message()));
      return false;
    }
    ParameterDocumenter documenter;
    (*made)->Visit(documenter);
    const auto takes = [&](const char* name) {
      for (const ParameterDoc& doc : documenter.docs()) {
        if (doc.name == name) return true;
      }
      Fail("command.line", absl::StrCat(request_.name, " has no ", name),
           absl::StrCat("leave out --", name));
      return false;
    };
    if ((request_.group && !takes("group")) || (request_.order && !takes("order"))) return false;
    Value table;
    table.kind = Value::kTable;
    if (request_.group) table.table.emplace_back("group", Value::Integer(*request_.group));
    if (request_.order) table.table.emplace_back("order", Value::Text(*request_.order));
    Diagnostics own;
    ParameterReader reader(&table, {}, {}, &own);
    const auto init = [&] {
      (*made)->Visit(reader);
      reader.Finish();
      InitContext context;
      context.rules = &rules_;
      context.precision = &precision_;
      context.diagnostics = &own;
      const PluginInfo* info = registry_.Find(Schedule::kKind, request_.name);
      const std::filesystem::path folder =
          info != nullptr ? std::filesystem::path(info->file).parent_path() : "";
      context.directory = folder.string();
      context.read_toml = [&, folder](const std::string& file) {
        return ReadTomlFile((folder / file).string(), own);
      };
      context.read_user_toml = [&](const std::string& file) { return ReadTomlFile(file, own); };
      context.read_user_text = [&](const std::string& file) {
        return ReadTextFile(file, own, kMaximumDataBytes);
      };
      context.place_of = [&](const std::string& name) { return reader.PlaceOf(name); };
      context.is_given = [&](const std::string& name) { return reader.IsGiven(name); };
      if (!own.HasErrors()) (*made)->Init(context);
    };
    const absl::Status done =
        Guarded(absl::StrCat("plugin \"", request_.name, "\" cannot be initialised"), init);
    if (!done.ok()) own.Error("plugin.threw", {}, std::string(done.message()));
    diagnostics_.Append(own);
    study_.schedule = std::static_pointer_cast<Schedule>(std::shared_ptr<Plugin>(std::move(*made)));
    return !own.HasErrors();
  }

  std::optional<ScheduleStudy> Play() {
    absl::StatusOr<CompiledOrder> compiled = CompileOrder(*study_.schedule, study_.shape);
    if (!compiled.ok()) {
      return Fail("schedule.order",
                  absl::StrCat("schedule \"", study_.name,
                               "\" gives an impossible order: ", compiled.status().message()));
    }
    study_.compiled = *std::move(compiled);
    study_.order = study_.schedule->Order(study_.shape);
    const double v = study_.shape.chunks;
    const ChunkTimes& t = request_.times;
    study_.times = {t.forward / v, t.input_gradient / v, t.weight_gradient / v,
                    t.pair < 0 ? -1 : t.pair / v, t.recompute / v};
    study_.timeline =
        PlayTimeline(study_.compiled, StageCosts(study_.compiled, study_.times), request_.hop);
    return std::move(study_);
  }

  const PluginRegistry& registry_;
  const ScheduleRequest& request_;
  Diagnostics& diagnostics_;
  AccountingRules rules_;
  Precision precision_;
  ScheduleStudy study_;
};

}  // namespace

std::optional<ScheduleStudy> StudySchedule(const PluginRegistry& registry,
                                           const ScheduleRequest& request,
                                           Diagnostics* diagnostics) {
  return Student(registry, request, diagnostics).Run();
}

Json StudyDocument(const ScheduleStudy& study, bool events) {
  const Timeline& t = study.timeline;
  Json doc = {{"schema", "shardlab.simulation/1"},
              {"schedule", study.name},
              {"pipeline", study.shape.ranks},
              {"micro_batches", study.shape.micro_batches},
              {"chunks", study.shape.chunks},
              {"stages", study.compiled.stages},
              {"makespan_seconds", t.makespan},
              {"bubble_fraction", t.bubble_fraction},
              {"max_idle_seconds", 0.0},
              {"max_own_bubble_seconds", 0.0},
              {"ranks", Json::array()}};
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    const RankTimeline& rank = t.ranks[r];
    doc["max_idle_seconds"] = std::max(doc["max_idle_seconds"].get<double>(), rank.idle);
    doc["max_own_bubble_seconds"] =
        std::max(doc["max_own_bubble_seconds"].get<double>(), rank.own_bubble);
    doc["ranks"].push_back({{"rank", r},
                            {"busy_seconds", rank.busy},
                            {"idle_seconds", rank.idle},
                            {"own_bubble_seconds", rank.own_bubble},
                            {"peak_in_flight_chunks", rank.peak_in_flight},
                            {"peak_in_flight_chunks_until_i", rank.peak_in_flight_until_i},
                            {"peak_at_seconds", rank.peak_at}});
  }
  if (!events) return doc;
  doc["events"] = Json::array();
  const auto add = [&doc](int rank, const char* stream, const char* kind, const Work& work,
                          double start, double end) {
    Json event = {{"rank", rank},
                  {"stream", stream},
                  {"kind", kind},
                  {"chunk", work.chunk},
                  {"micro_batch", work.micro_batch},
                  {"start_seconds", start},
                  {"end_seconds", end}};
    if (work.kind == WorkKind::kFB) {
      event["backward_chunk"] = work.backward_chunk;
      event["backward_micro_batch"] = work.backward_micro_batch;
    }
    doc["events"].push_back(std::move(event));
  };
  for (const TimedWork& w : t.works) {
    const double replayed = Replays(w.work.kind) ? w.start + study.times.recompute : w.start;
    if (replayed > w.start) add(w.rank, "compute", "R", w.work, w.start, replayed);
    add(w.rank, "compute", Name(w.work.kind), w.work, replayed, w.end);
  }
  for (const TimedMessage& m : t.messages) {
    add(m.from_rank, "send/recv", "SEND", m.from, m.start, m.end);
    doc["events"].back()["name"] = m.forward ? "activations" : "gradients";
    add(m.to_rank, "send/recv", "RECV", m.to, m.start, m.end);
    doc["events"].back()["name"] = m.forward ? "activations" : "gradients";
  }
  return doc;
}

std::string StudyCsv(const ScheduleStudy& study) {
  return OrderToCsv(study.order, {study.compiled.stage_of.begin(), study.compiled.stage_of.end()});
}

}  // namespace shardlab
