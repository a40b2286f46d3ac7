#include "app/sweep_command.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "app/progress.h"
#include "app/workers.h"
#include "base/text.h"
#include "io/sweep_store.h"
#include "io/sweep_text.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr int kMostJobs = 1024;

struct Asked {
  std::string file, store;
  std::vector<std::string> sets;
  int jobs = 0;
  bool documents = false;
};

// Rows as they come, to the store and to standard output.
class Runner {
 public:
  Runner(const Sweep& sweep, const Asked& asked, const CommandLine& line, Streams streams)
      : sweep_(sweep), asked_(asked), line_(line), streams_(streams) {
    for (const SweptKey* key : sweep.table.Keys()) stored_.keys.push_back(key->key);
    stored_.kind = "sweep";
    stored_.name = sweep.name;
    stored_.scenario = sweep.canonical;
    stored_.scenario_hash = ScenarioHash(sweep.canonical);
    stored_.program_version = SHARDLAB_VERSION;
    stored_.combinations = sweep.table.size();
  }

  absl::Status Run() {
    whole_ = line_.format() == "json" || line_.format() == "jsonl";
    std::int64_t first = 0;
    // Tables are written from a store, one of this process if need be: memory does not grow with
    // the rows.
    if (!asked_.store.empty() || !whole_) {
      absl::StatusOr<SweepStore> store = SweepStore::Open(asked_.store, true);
      if (!store.ok()) return store.status();
      store_.emplace(std::move(*store));
      absl::StatusOr<StoredSweep> begun = store_->Begin(stored_);
      if (!begun.ok()) return begun.status();
      stored_ = std::move(*begun);
      // Whole documents are not stored: those that were shown before are planned again.
      if (!whole_) {
        first = stored_.next;
        counts_ = stored_.counts;
      }
    }
    Begin();
    {
      Progress progress(streams_, stored_.combinations, first);
      SweepOptions options;
      options.jobs = Jobs(asked_.jobs);
      options.documents = whole_ || asked_.documents;
      options.first = first;
      if (Workers* workers = streams_.terminal.workers) {
        options.jobs = workers->slots();
        options.elsewhere = [this, workers, documents = options.documents](
                                std::int64_t begin, std::int64_t past, int slot) {
          return AskForPiece(workers, slot, WorkOf(sweep_.scenario), begin, past, documents);
        };
      }
      try {
        RunSweep(sweep_, options, [&](SweepPiece piece) {
          Take(std::move(piece));
          if (!status_.ok()) throw CannotGoOn();
          progress.Update(counts_.considered);
        });
      } catch (const CannotGoOn&) {
      }
    }
    if (status_.ok()) status_ = End();
    return status_;
  }

  const std::string& problem() const { return problem_; }

 private:
  void Begin() {
    if (line_.json())
      streams_.out << "{\"schema\": \"shardlab.sweep/1\",\n\"scenario\": "
                   << Json(sweep_.name).dump() << ",\n\"rows\": [";
  }

  struct CannotGoOn {};  // what is wrong is in status_

  void Take(SweepPiece piece) {
    Add(piece.counts, &counts_);
    if (problem_.empty()) problem_ = piece.problem;
    for (const Json& constant : piece.provenance) {
      if (std::find(provenance_.begin(), provenance_.end(), constant) == provenance_.end())
        provenance_.push_back(constant);
    }
    if (whole_) {
      for (const SweepRow& row : piece.rows) {
        streams_.out << (!line_.json()     ? ""
                         : written_++ == 0 ? "\n"
                                           : ",\n")
                     << row.document << (line_.json() ? "" : "\n");
      }
    }
    if (line_.format() == "jsonl") streams_.out.flush();
    if (store_ && piece.first == stored_.next)
      status_ = store_->Append(std::move(piece), asked_.documents, &stored_);
  }

  absl::Status End() {
    if (line_.json()) {
      streams_.out << "\n],\n\"counts\": " << CountsToJson(counts_).dump()
                   << ",\n\"provenance\": " << Json(provenance_).dump() << "}\n";
    } else if (line_.format() == "csv") {
      SweepCsv csv(stored_.keys, stored_.columns);
      streams_.out << csv.Head();
      return store_->EachRow(stored_, [&](const SweepRow& row) {
        return static_cast<bool>(streams_.out << csv.Line(row));
      });
    } else if (!whole_) {
      SweepText text({sweep_.name, stored_.combinations, counts_, stored_.keys}, line_.style());
      absl::Status read = store_->EachRow(stored_, [&](const SweepRow& row) {
        text.Add(row);
        return true;
      });
      if (!read.ok()) return read;
      streams_.out << text.Make();
    }
    return absl::OkStatus();
  }

  const Sweep& sweep_;
  const Asked& asked_;
  const CommandLine& line_;
  Streams streams_;
  bool whole_ = false;
  std::optional<SweepStore> store_;
  StoredSweep stored_;
  SweepCounts counts_;
  std::vector<Json> provenance_;
  std::string problem_;
  std::size_t written_ = 0;
  absl::Status status_;
};

}  // namespace

int Jobs(int asked) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int JobsBesideWorkers(CommandLine* line, Streams streams) {
  const bool several = streams.terminal.workers != nullptr || streams.terminal.questions != nullptr;
  if (!several || line->values().count("jobs") == 0) return kDone;
  return line->Fail("--jobs is for one process; here there are several, one thread each",
                    "leave it out, and start as many processes as there are cores");
}

int SweepCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("sweep FILE [--jobs N] [--store DB] [--set KEY=VALUE]...",
                   "Plans every combination of the file's [sweep]. With --store the rows go to an "
                   "SQLite file too,\nand a sweep that was interrupted goes on where it was.",
                   streams, {"text", "json", "jsonl", "csv"});
  Asked asked;
  line.options().add_options()("jobs", po::value(&asked.jobs),
                               "threads; as many as the machine has if left out")(
      "store", po::value(&asked.store), "an SQLite file, made where it is missing")(
      "documents", "store whole plan documents too")(
      "set", po::value(&asked.sets)->composing(),
      "a key of the file with another value; repeatable");
  if (!line.Parse(args, 1, 1)) return line.status();
  if (line.values().count("jobs") != 0 && (asked.jobs < 1 || asked.jobs > kMostJobs))
    return line.Fail(
        absl::StrCat("--jobs is a number from 1 to ", kMostJobs, ", not ", asked.jobs));
  if (const int status = JobsBesideWorkers(&line, streams); status != kDone) return status;
  asked.documents = line.values().count("documents") != 0;
  if (asked.documents && asked.store.empty())
    return line.Fail("--documents needs a store", "name one with --store DB");
  asked.file = line.positional()[0];
  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  Diagnostics diagnostics;
  const Scenario scenario = ReadScenario(asked.file, asked.sets, diagnostics);
  const Sources sources = {{scenario.file, scenario.text}};
  std::optional<Sweep> sweep;
  if (!diagnostics.HasErrors()) sweep = ReadSweep(registry, scenario, &diagnostics);
  if (!sweep || diagnostics.HasErrors()) {
    diagnostics.Sort();
    line.Tell(diagnostics, sources);
    return kWrongInput;
  }
  if (streams.terminal.questions != nullptr) {
    ServeSweep(*sweep, WorkOf(scenario), streams.terminal.questions);
    return kDone;
  }
  Runner runner(*sweep, asked, line, streams);
  absl::Status done;
  try {
    done = runner.Run();
  } catch (const WorkerFailure& failure) {
    done = absl::InternalError(failure.what());
  }
  if (!done.ok()) {
    line.Fail(std::string(done.message()));
    return absl::IsInvalidArgument(done) ? kWrongInput : kOther;
  }
  if (!runner.problem().empty()) {
    diagnostics.Warning(
        "condition.value", sweep->table.keep->place(),
        absl::StrCat("keep cannot be decided for some combinations, which are kept: ",
                     runner.problem()));
  }
  line.TellOnError(diagnostics, sources);
  return kDone;
}

}  // namespace shardlab
