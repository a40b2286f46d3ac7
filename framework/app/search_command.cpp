#include "app/search_command.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "app/progress.h"
#include "app/sweep_command.h"
#include "base/text.h"
#include "io/search_document.h"
#include "io/search_why.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr int kMostJobs = 1024, kMostRows = 10'000;

}  // namespace

int SearchCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("search FILE [--top N] [--objective ...] [--pareto] [--count] [--jobs N]",
                   "The best legal plans for the file's model and machine, over a grid of degrees, "
                   "micro-batches,\nsharding, recomputation and schedules; [search] says what is "
                   "fixed or varied otherwise.",
                   streams, {"text", "json", "jsonl"});
  int jobs = 0, top = 10;
  std::string objective;
  std::vector<std::string> sets, why_not;
  line.options().add_options()("top", po::value(&top), "rows to show; 10 if left out")(
      "objective", po::value(&objective), Enumerate(ObjectiveNames(), "or").c_str())(
      "pareto", "the plans that no other beats in both the objective and memory")(
      "why-not", po::value(&why_not)->composing(),
      "KEY=VALUE: what is wrong with the winner if it has this key; repeatable")(
      "count", "only how many plans the grid has")(
      "jobs", po::value(&jobs), "threads; as many as the machine has if left out")(
      "set", po::value(&sets)->composing(), "a key of the file with another value; repeatable");
  if (!line.Parse(args, 1, 1)) return line.status();
  if (line.values().count("jobs") != 0 && (jobs < 1 || jobs > kMostJobs))
    return line.Fail(absl::StrCat("--jobs is a number from 1 to ", kMostJobs, ", not ", jobs));
  if (top < 1 || top > kMostRows)
    return line.Fail(absl::StrCat("--top is a number from 1 to ", kMostRows, ", not ", top));
  // On the command line it stands above the file's.
  if (!objective.empty()) {
    if (!ParseObjective(objective)) {
      const std::string near = Nearest(objective, ObjectiveNames());
      return line.Fail(absl::StrCat("there is no objective \"", objective, "\""),
                       near.empty() ? absl::StrCat("objectives: ", Enumerate(ObjectiveNames()))
                                    : absl::StrCat("did you mean \"", near, "\"?"));
    }
    sets.push_back(absl::StrCat("search.objective=\"", objective, "\""));
  }
  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  Diagnostics diagnostics;
  const Scenario scenario = ReadScenario(line.positional()[0], sets, diagnostics);
  const Sources sources = {{scenario.file, scenario.text}};
  std::optional<SearchGrid> grid;
  if (!diagnostics.HasErrors()) grid = ReadSearchGrid(registry, scenario, &diagnostics);
  if (!grid || diagnostics.HasErrors()) {
    diagnostics.Sort();
    line.Tell(diagnostics, sources);
    return kWrongInput;
  }
  if (line.values().count("count") != 0) {
    if (line.format() == "text") {
      streams.out << grid->size() << "\n";
    } else {
      streams.out << Json({{"schema", "shardlab.search/1"},
                           {"counts", {{"considered", grid->size()}}}})
                         .dump()
                  << "\n";
    }
    return kDone;
  }
  SearchResult result;
  {
    Progress progress(streams, grid->size());
    const bool pareto = line.values().count("pareto") != 0;
    result = RunSearch(registry, *grid, {Jobs(jobs), static_cast<std::size_t>(top), pareto},
                       [&](std::int64_t done) { progress.Update(done); });
  }
  Json document = SearchDocument(registry, *grid, result, line.values().count("pareto") != 0);
  if (!why_not.empty()) {
    document["why_not"] = WhyNotDocument(registry, *grid, result, why_not, &diagnostics);
    if (diagnostics.HasErrors()) {
      line.Tell(diagnostics, sources);
      return kWrongInput;
    }
  }
  if (line.json()) {
    streams.out << document.dump(2) << "\n";
  } else if (line.format() == "jsonl") {
    for (const Json& row : document["rows"]) streams.out << row.dump() << "\n";
  } else {
    streams.out << SearchText(document, line.style());
  }
  return kDone;
}

}  // namespace shardlab
