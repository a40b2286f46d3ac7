#include "app/search_command.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "app/progress.h"
#include "app/sweep_command.h"
#include "app/workers.h"
#include "base/text.h"
#include "io/right_size.h"
#include "io/search_document.h"
#include "io/search_why.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr const char* kSizing[] = {"devices", "hardware", "max-step", "budget"};
constexpr int kMostJobs = 1024, kMostRows = 10'000;

}  // namespace

int SearchCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("search FILE [--top N] [--objective ...] [--pareto] [--count] [--jobs N]",
                   "The best legal plans for the file's model and machine, over a grid of degrees, "
                   "micro-batches,\nsharding, recomputation and schedules; [search] says what is "
                   "fixed or varied otherwise.",
                   streams, {"text", "json", "jsonl"});
  int jobs = 0, top = 10;
  double max_step = 0, budget = 0;
  std::string objective, devices, hardware;
  std::vector<std::string> sets, why_not;
  line.options().add_options()("top", po::value(&top), "rows to show; 10 if left out")(
      "objective", po::value(&objective), Enumerate(ObjectiveNames(), "or").c_str())(
      "pareto", "the plans that no other beats in both the objective and memory")(
      "why-not", po::value(&why_not)->composing(),
      "KEY=VALUE: what is wrong with the winner if it has this key; repeatable")(
      "devices", po::value(&devices),
      "right-sizing: search on 8..1024 (doubles) or 8,12,16 devices each")(
      "hardware", po::value(&hardware),
      "right-sizing: on these machines, PLUGIN or PLUGIN:PRESET, @PRICE of a device and hour")(
      "max-step", po::value(&max_step), "right-sizing: seconds that a step may take")(
      "budget", po::value(&budget), "right-sizing: what an hour of all devices may cost")(
      "count", "only how many plans the grid has")(
      "jobs", po::value(&jobs), "threads; as many as the machine has if left out")(
      "set", po::value(&sets)->composing(), "a key of the file with another value; repeatable");
  if (!line.Parse(args, 1, 1)) return line.status();
  if (line.values().count("jobs") != 0 && (jobs < 1 || jobs > kMostJobs))
    return line.Fail(absl::StrCat("--jobs is a number from 1 to ", kMostJobs, ", not ", jobs));
  if (const int status = JobsBesideWorkers(&line, streams); status != kDone) return status;
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
  const bool sizing = std::any_of(std::begin(kSizing), std::end(kSizing), [&](const char* option) {
    return line.values().count(option) != 0;
  });
  if (sizing && !diagnostics.HasErrors()) {
    if (streams.terminal.workers != nullptr || streams.terminal.questions != nullptr)
      return line.Fail("right-sizing is many small searches, which one process does",
                       "run shardlab search with these options");
    std::string problem;
    std::optional<SizeRequest> request = ReadSizes(devices, hardware, &problem);
    if (!request) return line.Fail(problem);
    if (line.values().count("max-step") != 0) request->max_step = max_step;
    if (line.values().count("budget") != 0) request->budget = budget;
    const Json sized = RightSize(registry, scenario, *request, {.jobs = Jobs(jobs), .top = 1});
    streams.out << (line.format() == "text" ? RightSizeText(sized)
                    : line.json()           ? sized.dump(2) + "\n"
                                            : sized.dump() + "\n");
    return kDone;
  }
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
  const bool pareto = line.values().count("pareto") != 0;
  SearchOptions options;
  options.jobs = Jobs(jobs);
  options.top = static_cast<std::size_t>(top);
  options.pareto = pareto;
  const std::string work = WorkOf(scenario);
  if (streams.terminal.questions != nullptr) {
    ServeSearch(registry, *grid, options, work, streams.terminal.questions);
    return kDone;
  }
  if (Workers* workers = streams.terminal.workers) {
    options.jobs = workers->slots();
    options.elsewhere = [workers, &work](int group, std::int64_t first, double to_beat, int slot) {
      return AskForGroup(workers, slot, work, group, first, to_beat);
    };
  }
  SearchResult result;
  try {
    Progress progress(streams, grid->size());
    result = RunSearch(registry, *grid, options, [&](std::int64_t done) { progress.Update(done); });
  } catch (const WorkerFailure& failure) {
    line.Fail(failure.what());
    return kOther;
  }
  Json document = SearchDocument(registry, *grid, result, pareto, Jobs(jobs));
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
