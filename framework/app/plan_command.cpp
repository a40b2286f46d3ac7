#include "app/plan_command.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/expectations.h"
#include "io/explain_text.h"
#include "io/plan_document.h"
#include "io/plan_text.h"
#include "io/scalar_paths.h"
#include "io/suggest.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;

// One row of scalars: name of each path, then its value.
void PrintCsv(const nlohmann::ordered_json& document, std::ostream& out) {
  std::string header, row;
  for (const auto& [path, value] :
       ScalarPaths(document, {"scenario", "accounting", "model", "hardware", "plan", "memory",
                              "time", "throughput"})) {
    absl::StrAppend(&header, header.empty() ? "" : ",", path);
    absl::StrAppend(&row, row.empty() ? "" : ",", CsvField(value));
  }
  out << header << "\n" << row << "\n";
}

// What of a table does not stand in `file`: it came by --set.
Value OnlySet(const Value& table, const std::string& file) {
  Value set;
  set.kind = Value::kTable;
  for (const auto& [key, value] : table.table) {
    if (value.place.file != file) {
      set.table.emplace_back(key, value);
    } else if (value.kind == Value::kTable) {
      if (Value inner = OnlySet(value, file); !inner.table.empty())
        set.table.emplace_back(key, std::move(inner));
    }
  }
  return set;
}

}  // namespace

Planned ReadAndPlan(const PluginRegistry& registry, const std::string& file,
                    const std::vector<std::string>& sets, PlannedOrder kind) {
  Planned p;
  p.scenario = ReadScenario(file, sets, p.diagnostics);
  p.sources[p.scenario.file] = p.scenario.text;
  if (!p.diagnostics.HasErrors())
    p.planned = PlanScenario(registry, p.scenario, &p.diagnostics, kind);
  return p;
}

int PlanCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("plan FILE [--set KEY=VALUE]... [--require-fit]",
                   "Plans a scenario: memory of each pipeline rank, step time, traffic, verdict.",
                   streams, {"text", "json", "csv"});
  std::vector<std::string> sets;
  line.options().add_options()("set", po::value(&sets)->composing(),
                               "a key of the file with another value; repeatable")(
      "require-fit", "exit with status 3 when the plan does not fit");
  if (!line.Parse(args, 1, 1)) return line.status();

  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  Planned p = ReadAndPlan(registry, line.positional()[0], sets);
  if (p.planned.composed.composition == nullptr) {
    line.Tell(p.diagnostics, p.sources);
    return kWrongInput;
  }
  const nlohmann::ordered_json document = PlanDocument(p.planned, p.diagnostics);
  Diagnostics misses;
  // The file's expectations are of its own plan; those of the command line are of this one.
  const Value& expect = p.planned.composed.expect;
  CheckExpectations(sets.empty() ? expect : OnlySet(expect, p.scenario.file), document, &misses);
  if (line.json()) {
    nlohmann::ordered_json told = document;
    for (const Diagnostic& miss : misses.all())
      told["diagnostics"].push_back(DiagnosticToJson(miss));
    streams.out << told.dump(2) << "\n";
  } else if (line.format() == "csv") {
    PrintCsv(document, streams.out);
  } else {
    streams.out << PlanText(p.planned, document, Suggest(registry, p.scenario, sets, p.planned),
                            line.style());
  }
  // The document is out; what is left to say goes to standard error alone.
  Diagnostics all = p.diagnostics;
  all.Append(misses);
  line.TellOnError(all, p.sources);
  if (!misses.empty()) return kExpectationMissed;
  if (line.values().count("require-fit") != 0 && !p.planned.explanation.evaluation.fits)
    return kNoFit;
  return kDone;
}

int ExplainCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line(
      "explain FILE [ACCOUNT] [--set KEY=VALUE]...",
      absl::StrCat("Where a number comes from: signed rows with formula, values and source. "
                   "Without ACCOUNT all of\n",
                   "them; accounts: ", Wrapped(Enumerate(ExplainableAccounts()), 4, 90)),
      streams);
  std::vector<std::string> sets;
  line.options().add_options()("set", po::value(&sets)->composing(),
                               "a key of the file with another value; repeatable");
  if (!line.Parse(args, 1, 2)) return line.status();
  std::string account = line.positional().size() > 1 ? line.positional()[1] : "";
  if (const std::size_t tail = account.rfind("_bytes"); tail != std::string::npos)
    account.resize(tail);
  const std::vector<std::string> known = ExplainableAccounts();
  if (!account.empty() && std::find(known.begin(), known.end(), account) == known.end()) {
    const std::string near = Nearest(account, known);
    return line.Fail(absl::StrCat("there is no account \"", account, "\""),
                     absl::StrCat(near.empty() ? "" : absl::StrCat("did you mean \"", near, "\"? "),
                                  "accounts: ", Enumerate(known)));
  }
  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  const Planned p = ReadAndPlan(registry, line.positional()[0], sets);
  if (p.planned.composed.composition == nullptr) {
    line.Tell(p.diagnostics, p.sources);
    return kWrongInput;
  }
  if (line.json()) {
    streams.out << ExplainDocument(p.planned, account).dump(2) << "\n";
  } else {
    streams.out << ExplainText(p.planned, account, line.style());
  }
  line.TellOnError(p.diagnostics, p.sources);
  return kDone;
}

}  // namespace shardlab
