#include "app/command_line.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "io/plugin_directories.h"

namespace shardlab {

namespace po = boost::program_options;

CommandLine::CommandLine(std::string usage, std::string about, Streams streams,
                         std::vector<std::string> formats)
    : usage_(std::move(usage)),
      about_(std::move(about)),
      formats_(std::move(formats)),
      streams_(streams),
      options_("options") {
  options_.add_options()("help,h", "this text")("version", "which shardlab this is")(
      "format", po::value<std::string>(&format_)->default_value("text"),
      absl::StrCat(Enumerate(formats_, "or")).c_str())(
      "plugins", po::value<std::vector<std::string>>(&plugin_directories_)->composing(),
      "a directory to look for plugins in, before all others; repeatable");
}

bool CommandLine::Parse(const std::vector<std::string>& args, std::size_t least, std::size_t most) {
  po::options_description all;
  all.add(options_);
  all.add_options()("positional", po::value<std::vector<std::string>>(&positional_));
  po::positional_options_description positional;
  positional.add("positional", -1);
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const po::parsed_options parsed =
        po::command_line_parser(args).options(all).positional(positional).style(style).run();
    po::store(parsed, values_);
    po::notify(values_);
    for (const po::option& option : parsed.options) {
      // A negative number of an unsigned kind is read as a huge one.
      if (option.value.empty() || option.value[0].rfind('-', 0) != 0 ||
          values_[option.string_key].value().type() != typeid(std::uint64_t))
        continue;
      status_ = Fail(absl::StrCat("--", option.string_key, " is 0 or more, not ", option.value[0]));
      return false;
    }
  } catch (const po::error& e) {
    // The format was not read; a program that asked for JSON gets it all the same.
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i] == "--format=json" || (args[i] == "json" && i > 0 && args[i - 1] == "--format"))
        format_ = "json";
    }
    status_ = Fail(e.what(),
                   absl::StrCat("see shardlab ", usage_.substr(0, usage_.find(' ')), " --help"));
    return false;
  }
  if (values_.count("help") != 0) {
    streams_.out << "usage: shardlab " << usage_ << "\n\n" << about_ << "\n\n" << options_;
    status_ = kDone;
    return false;
  }
  if (values_.count("version") != 0) {
    streams_.out << "shardlab " << SHARDLAB_VERSION << "\n";
    status_ = kDone;
    return false;
  }
  if (std::find(formats_.begin(), formats_.end(), format_) == formats_.end()) {
    status_ = Fail(absl::StrCat("there is no format \"", format_, "\" of ",
                                usage_.substr(0, usage_.find(' '))),
                   absl::StrCat("formats: ", absl::StrJoin(formats_, ", ")));
    return false;
  }
  if (positional_.size() < least || positional_.size() > most) {
    status_ = Fail(positional_.size() < least
                       ? "an argument is missing"
                       : absl::StrCat("one argument too many: \"", positional_[most], "\""),
                   absl::StrCat("usage: shardlab ", usage_));
    return false;
  }
  return true;
}

std::vector<std::string> CommandLine::directories() const {
  return PluginDirectories(plugin_directories_, streams_.terminal.program.c_str());
}

PluginRegistry CommandLine::LoadPlugins() {
  return PluginRegistry::Load(directories(), plugin_diagnostics_);
}

bool CommandLine::PluginsAreUsable() {
  if (!plugin_diagnostics_.HasErrors()) return true;
  Tell({}, {});
  return false;
}

void CommandLine::TellOnError(const Diagnostics& diagnostics, const Sources& sources) {
  Diagnostics all = diagnostics;
  all.Append(plugin_diagnostics_);
  all.Sort();
  Sources with = sources;
  LoadSources(all, &with);
  streams_.err << RenderDiagnostics(all, with, streams_.terminal.color_err);
}

void CommandLine::Tell(const Diagnostics& diagnostics, const Sources& sources) {
  TellOnError(diagnostics, sources);
  Diagnostics all = diagnostics;
  all.Append(plugin_diagnostics_);
  all.Sort();
  if (json() && all.HasErrors()) streams_.out << DiagnosticsToJson(all).dump(2) << "\n";
}

int CommandLine::Fail(const std::string& message, const std::string& hint) {
  Diagnostics diagnostics;
  diagnostics.Error("command.line", {}, message, hint);
  streams_.err << RenderDiagnostics(diagnostics, {}, streams_.terminal.color_err);
  if (json()) streams_.out << DiagnosticsToJson(diagnostics).dump(2) << "\n";
  return kWrongInput;
}

}  // namespace shardlab
