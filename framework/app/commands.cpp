#include "app/commands.h"

#include <algorithm>
#include <array>
#include <exception>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "app/compare_command.h"
#include "app/export_command.h"
#include "app/lesson_command.h"
#include "app/plan_command.h"
#include "app/plugins_command.h"
#include "app/schedule_command.h"
#include "app/search_command.h"
#include "app/simulate_command.h"
#include "app/sweep_command.h"
#include "app/validate_command.h"
#include "base/text.h"

namespace shardlab {
namespace {

int Plugins(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("plugins [list | show NAME | check LIB | new KIND NAME]",
                   "What is loaded and its parameters; tries a library; starts a new plugin.",
                   streams);
  if (!line.Parse(args, 0, 3)) return line.status();
  return PluginsCommand(line.positional(),
                        {line.directories(), line.json(), streams.terminal.color_err}, streams.out,
                        streams.err);
}

struct Command {
  const char* name;
  const char* about;
  int (*run)(const std::vector<std::string>& args, Streams streams);
};

constexpr std::array<Command, 14> kCommands = {{
    {"plan", "does it fit, how fast, what travels where", &PlanCommand},
    {"explain", "where a number comes from", &ExplainCommand},
    {"compare", "two plans side by side", &CompareCommand},
    {"validate", "published measurements against predictions", &ValidateCommand},
    {"simulate", "a step played event by event: timeline, memory over time, trace",
     &SimulateCommand},
    {"sweep", "every combination of a file's [sweep], to SQLite, CSV and JSON", &SweepCommand},
    {"results", "stored sweeps: list, filter, compare, plot, export", &ResultsCommand},
    {"search", "the best legal plans for a model on a machine", &SearchCommand},
    {"schedule", "a pipeline schedule alone, with given times", &ScheduleCommand},
    {"export", "the plan as flags, configuration or code of a training framework", &ExportCommand},
    {"lesson", "the course: 22 steps with live figures and drills", &LessonCommand},
    {"plugins", "what is loaded, its parameters, try a library, start a new one", &Plugins},
    {"models", "the models and their presets", &ModelsCommand},
    {"hardware", "the machines and their presets", &HardwareCommand},
}};

void Help(std::ostream& out) {
  out << "usage: shardlab COMMAND [ARGUMENTS]\n\n"
         "Plans how the training of a large model is split over a machine.\n\n";
  for (const Command& command : kCommands) {
    out << "  " << command.name
        << std::string(10 - std::min<std::size_t>(9, std::string(command.name).size()), ' ')
        << command.about << "\n";
  }
  out << "\n  shardlab COMMAND --help    its arguments\n  shardlab --version\n";
}

int Dispatch(const std::vector<std::string>& args, Streams streams) {
  if (args.empty()) {
    Help(streams.err);
    return kWrongInput;
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    Help(streams.out);
    return kDone;
  }
  if (args[0] == "--version") {
    streams.out << "shardlab " << SHARDLAB_VERSION << "\n";
    return kDone;
  }
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (args[0] == command.name) return command.run({args.begin() + 1, args.end()}, streams);
    names.push_back(command.name);
  }
  const std::string near = Nearest(args[0], names);
  Diagnostics diagnostics;
  diagnostics.Error("command.unknown", {}, absl::StrCat("there is no command \"", args[0], "\""),
                    near.empty() ? absl::StrCat("commands: ", Enumerate(names))
                                 : absl::StrCat("did you mean \"", near, "\"?"));
  streams.err << RenderDiagnostics(diagnostics, {}, streams.terminal.color_err);
  const bool json = std::find(args.begin(), args.end(), "json") != args.end() ||
                    std::find(args.begin(), args.end(), "--format=json") != args.end();
  if (json) streams.out << DiagnosticsToJson(diagnostics).dump(2) << "\n";
  return kWrongInput;
}

}  // namespace

int RunShardlab(const std::vector<std::string>& args, std::ostream& out, std::ostream& err,
                const Terminal& terminal) {
  const Streams streams{out, err, terminal};
  try {
    const int status = Dispatch(args, streams);
    // A full disk or a closed pipe must not look like success.
    if (out.flush()) return status;
    err << "shardlab: the output cannot be written\n";
    return status == kDone ? kOther : status;
  } catch (const std::exception& e) {
    // No mistake of the user gets here; say what is known rather than die.
    err << "shardlab: internal error: " << e.what() << "\n";
    return kOther;
  }
}

int RunShardlab(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  return RunShardlab(args, out, err, Terminal());
}

}  // namespace shardlab
