#include "app/compare_command.h"

#include "app/plan_command.h"
#include "io/compare.h"

namespace shardlab {

namespace po = boost::program_options;

int CompareCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line(
      "compare FILE FILE [--set-a KEY=VALUE]... [--set-b KEY=VALUE]...",
      "Two plans side by side: what is set differently, memory, time, throughput, "
      "traffic, and the rows\nof explain that differ. The same file twice with --set-b "
      "shows what one change does.",
      streams);
  std::vector<std::string> sets_a, sets_b;
  line.options().add_options()("set-a", po::value(&sets_a)->composing(),
                               "a key of the first file with another value; repeatable")(
      "set-b", po::value(&sets_b)->composing(), "the same of the second file");
  if (!line.Parse(args, 2, 2)) return line.status();

  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  const Planned a = ReadAndPlan(registry, line.positional()[0], sets_a);
  const Planned b = ReadAndPlan(registry, line.positional()[1], sets_b);
  Diagnostics all = a.diagnostics;
  all.Append(b.diagnostics);
  Sources sources = a.sources;
  sources.insert(b.sources.begin(), b.sources.end());
  if (a.planned.composed.composition == nullptr || b.planned.composed.composition == nullptr) {
    line.Tell(all, sources);
    return kWrongInput;
  }
  nlohmann::ordered_json comparison =
      CompareDocument(a.planned, PlanDocument(a.planned, a.diagnostics), b.planned,
                      PlanDocument(b.planned, b.diagnostics));
  if (line.json()) {
    comparison["diagnostics"] = nlohmann::ordered_json::array();
    for (const Diagnostic& d : all.all()) comparison["diagnostics"].push_back(DiagnosticToJson(d));
    streams.out << comparison.dump(2) << "\n";
  } else {
    streams.out << CompareText(comparison, line.style());
  }
  line.TellOnError(all, sources);
  return kDone;
}

}  // namespace shardlab
