#include "app/simulate_command.h"

#include <cmath>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "app/plan_command.h"
#include "base/text.h"
#include "io/less_bubble.h"
#include "io/simulation_report.h"
#include "io/trace.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;

// Beyond this a trace is larger than any viewer opens.
constexpr double kMostSlices = 2e7;

struct Request {
  std::string trace, devices;
  std::vector<std::string> sets, stragglers;
  double jitter = 0;
  std::uint64_t seed = 1;
};

int WorldOf(const Composition& c) {
  int world = c.plan.pipeline;
  for (const std::int32_t size : c.plan.atom) world *= size;
  return world;
}

// "RANK=FACTOR" into the factors of all ranks; an empty text when it is one, else why not.
std::string AddStraggler(const std::string& text, int ranks, std::vector<double>* factors) {
  const std::vector<std::string> parts = absl::StrSplit(text, '=');
  int rank = 0;
  double factor = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &rank) ||
      !absl::SimpleAtod(parts[1], &factor) || !(factor > 0) || !std::isfinite(factor))
    return absl::StrCat("--straggler must be RANK=FACTOR, not \"", text, "\"");
  if (rank < 0 || rank >= ranks) {
    return absl::StrCat("--straggler: there is no pipeline rank ", rank, ", ranks are 0 to ",
                        ranks - 1);
  }
  factors->resize(static_cast<std::size_t>(ranks), 1);
  (*factors)[static_cast<std::size_t>(rank)] = factor;
  return "";
}

double SlicesOf(const SimulationReport& report, bool detail, std::size_t devices) {
  const Form& form = report.composition().form;
  const double layers = static_cast<double>(report.composition().edited.program.facts.layers) /
                        static_cast<double>(report.simulation.ranks.size());
  const double each =
      detail ? layers * static_cast<double>(1 + form.ops.size() + form.transfers.size()) : 4;
  return each * static_cast<double>(report.simulation.passes.size()) *
         static_cast<double>(devices) / static_cast<double>(report.simulation.ranks.size());
}

}  // namespace

int SimulateCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("simulate FILE [--trace OUT.json] [--gantt] [--events] [--set KEY=VALUE]...",
                   "Plays a scenario's step event by event: compute, collectives, messages, memory "
                   "over time.",
                   streams);
  Request request;
  SimulateOptions options;
  line.options().add_options()("set", po::value(&request.sets)->composing(),
                               "a key of the file with another value; repeatable")(
      "trace", po::value(&request.trace), "writes a Chrome trace for Perfetto or speedscope")(
      "gantt", "a chart, one line a pipeline rank")("events", "all that happens, with its times")(
      "detail", "events and trace down to layers, ops and collectives")(
      "devices", po::value(&request.devices),
      "in the trace: all, or the first N (default: one of each pipeline rank)")(
      "contention", "traffic that meets on a port shares its rate")(
      "blocking-sends", "a rank goes on when its message is out")(
      "straggler", po::value(&request.stragglers)->composing(),
      "RANK=FACTOR: how much slower a pipeline rank is; repeatable")(
      "jitter", po::value(&request.jitter),
      "standard deviation of a pass's time, as a share of it (default 0)")(
      "seed", po::value(&request.seed), "of the jitter (default 1)");
  if (!line.Parse(args, 1, 1)) return line.status();
  const auto given = [&line](const char* option) { return line.values().count(option) != 0; };
  if (!(request.jitter >= 0 && request.jitter <= 1))
    return line.Fail(absl::StrCat("--jitter must be from 0 to 1, not ", request.jitter));
  if (given("seed") && !given("jitter"))
    return line.Fail("--seed is of the jitter", "write --jitter 0.05 too, or leave out --seed");
  if (given("devices") && !given("trace"))
    return line.Fail("--devices says what the trace shows", "write --trace OUT.json too");
  if (given("detail") && !given("trace") && !given("events")) {
    return line.Fail("--detail is of events and of the trace",
                     "write --events or --trace OUT.json too");
  }
  int first = 0;
  if (given("devices") && request.devices != "all" &&
      (!absl::SimpleAtoi(request.devices, &first) || first < 1)) {
    return line.Fail(
        absl::StrCat("--devices must be all or a number from 1, not \"", request.devices, "\""));
  }
  options.contention = given("contention");
  options.blocking_sends = given("blocking-sends");
  options.jitter = request.jitter;
  options.seed = request.seed;

  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  const Planned p = ReadAndPlan(registry, line.positional()[0], request.sets, PlannedOrder::kWhole);
  if (p.planned.composed.composition == nullptr) {
    line.Tell(p.diagnostics, p.sources);
    return kWrongInput;
  }
  const Composition& c = *p.planned.composed.composition;
  for (const std::string& straggler : request.stragglers) {
    const std::string wrong = AddStraggler(straggler, c.plan.pipeline, &options.factors);
    if (!wrong.empty()) return line.Fail(wrong, "write --straggler 0=1.2");
  }
  const int world = WorldOf(c);
  if (request.devices == "all") first = world;
  if (first > world) {
    return line.Fail(absl::StrCat("--devices ", first, ": the machine has ", world, " devices"));
  }
  const CompiledOrder* order = p.planned.order ? &*p.planned.order : nullptr;
  const Simulation simulation = Simulate(c, c.plan, order, options);
  const SimulationReport report{p.planned, options, simulation};
  const bool detail = given("detail");
  if (given("trace")) {
    const std::vector<int> devices = DevicesShown(c, c.plan, first);
    if (SlicesOf(report, detail, devices.size()) > kMostSlices) {
      return line.Fail(
          absl::StrCat("a trace of ", WithThousands(static_cast<long long>(devices.size())),
                       " devices is larger than any viewer opens"),
          "ask for fewer --devices, or leave out --detail");
    }
    std::ofstream file(request.trace, std::ios::binary);
    file << TraceJson(report, {detail, devices});
    if (!file.flush()) {
      return line.Fail(absl::StrCat("--trace: \"", request.trace, "\" cannot be written"));
    }
  }
  // Of the plan as it is, without what only some run has: stragglers, jitter.
  const double bubble = Simulate(c, c.plan, order, {}).bubble_fraction;
  const std::vector<LessBubble> less =
      ShrinkBubble(registry, p.scenario, request.sets, p.planned, bubble);
  if (line.json()) {
    nlohmann::ordered_json document =
        SimulationDocument(report, {given("events"), given("events") && detail});
    document["less_bubble"] = LessBubbleDocument(less);
    streams.out << document.dump(2) << "\n";
  } else {
    streams.out << SimulationText(report, line.style());
    const std::string shrinks = LessBubbleText(less, bubble, line.style());
    if (!shrinks.empty()) streams.out << "\n" << shrinks;
    if (given("gantt")) streams.out << "\n" << SimulationChart(report, line.style());
    if (given("events")) streams.out << "\n" << SimulationEvents(report, detail);
  }
  line.TellOnError(p.diagnostics, p.sources);
  return kDone;
}

}  // namespace shardlab
