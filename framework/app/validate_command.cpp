#include "app/validate_command.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/measurement_rules.h"
#include "io/read_file.h"
#include "io/shared_files.h"
#include "io/validation_report.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;

constexpr const char* kRulesFile = "validation/sources.toml";

// The rows of these sources alone; an unknown name is a diagnostic.
std::vector<Measurement> OfSources(const std::vector<Measurement>& all,
                                   const MeasurementRules& rules,
                                   const std::vector<std::string>& sources,
                                   Diagnostics* diagnostics) {
  if (sources.empty()) return all;
  std::vector<Measurement> kept;
  std::vector<std::string> known;
  for (const Measurement& m : all) {
    const std::string source = ScenarioOf(m, rules).source;
    if (std::find(known.begin(), known.end(), source) == known.end()) known.push_back(source);
    if (std::find(sources.begin(), sources.end(), source) != sources.end()) kept.push_back(m);
  }
  for (const std::string& source : sources) {
    if (std::find(known.begin(), known.end(), source) != known.end()) continue;
    const std::string near = Nearest(source, known);
    diagnostics->Error("command.line", {}, absl::StrCat("the file has no source \"", source, "\""),
                       near.empty() ? absl::StrCat("sources: ", Enumerate(known))
                                    : absl::StrCat("did you mean \"", near, "\"?"));
  }
  return kept;
}

}  // namespace

int ValidateCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("validate FILE.csv [--source NAME]... [--rows] [--show ID] [--rules FILE]",
                   "Published measurements against predictions: errors of memory and step time by "
                   "source, beside two\nbaselines, and why rows were skipped. Columns, rules and "
                   "baselines: docs/validation.md.",
                   streams);
  std::vector<std::string> sources;
  std::string show, rules_file;
  line.options().add_options()("source", po::value(&sources)->composing(),
                               "rows of this source alone; repeatable")(
      "rows", "a line for each row as well")("show", po::value(&show),
                                             "print the scenario of one row, to plan it")(
      "rules", po::value(&rules_file), "how rows become scenarios, instead of the file that ships");
  if (!line.Parse(args, 1, 1)) return line.status();
  if (rules_file.empty()) rules_file = SharedFile(kRulesFile, streams.terminal.program.c_str());
  if (rules_file.empty())
    return line.Fail(absl::StrCat("the file ", kRulesFile, " is not where it was installed"),
                     "name one with --rules FILE");

  const std::string& file = line.positional()[0];
  Diagnostics diagnostics;
  const MeasurementRules rules = ReadMeasurementRules(rules_file, diagnostics);
  const std::optional<std::string> text = ReadTextFile(file, diagnostics);
  std::vector<Measurement> measurements;
  if (text) measurements = ReadMeasurements(*text, file, rules.text_columns, diagnostics);
  Sources texts;
  if (text) texts[file] = *text;
  if (!diagnostics.HasErrors())
    measurements = OfSources(measurements, rules, sources, &diagnostics);
  if (diagnostics.HasErrors()) {
    line.Tell(diagnostics, texts);
    return kWrongInput;
  }
  if (!show.empty()) {
    std::vector<std::string> ids;
    for (const Measurement& m : measurements) {
      ids.push_back(m.id);
      if (m.id != show) continue;
      const RowScenario row = ScenarioOf(m, rules);
      if (!row.skip.empty())
        return line.Fail(absl::StrCat("the row ", show, " makes no scenario: ", row.skip));
      if (line.json()) {
        const nlohmann::ordered_json shown = {{"schema", "shardlab.validation_row/1"},
                                              {"id", row.filled.id},
                                              {"source", row.source},
                                              {"scenario", row.toml}};
        streams.out << shown.dump(2) << "\n";
      } else {
        streams.out << row.toml;
      }
      return kDone;
    }
    const std::string near = Nearest(show, ids);
    return line.Fail(absl::StrCat("the file has no row \"", show, "\""),
                     near.empty() ? "" : absl::StrCat("did you mean \"", near, "\"?"));
  }
  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  const Validation validation = Validate(registry, measurements, rules);
  if (line.json()) {
    streams.out << ValidationDocument(validation, file).dump(2) << "\n";
  } else {
    streams.out << ValidationText(validation, {file, line.values().count("rows") != 0},
                                  line.style());
  }
  line.TellOnError(diagnostics, texts);
  return kDone;
}

}  // namespace shardlab
