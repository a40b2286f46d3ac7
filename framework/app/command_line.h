#pragma once
// What every command shares: options read with Boost.ProgramOptions, the registry, diagnostics
// printed.
//
//   CommandLine line(args, terminal, out, err);
//   if (!line.Parse("plan FILE", options, positional)) return line.status();

#include <boost/program_options.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "app/commands.h"
#include "io/plugin_registry.h"
#include "io/render_diagnostics.h"
#include "io/text_style.h"

namespace shardlab {

inline constexpr int kDone = 0, kOther = 1, kWrongInput = 2, kNoFit = 3, kExpectationMissed = 4;

struct Streams {
  std::ostream& out;
  std::ostream& err;
  const Terminal& terminal;
};

class CommandLine {
 public:
  // `formats`: those that the command writes.
  CommandLine(std::string usage, std::string about, Streams streams,
              std::vector<std::string> formats = {"text", "json"});

  // The command's own options, added before Parse.
  boost::program_options::options_description& options() { return options_; }
  // Reads; at most `most` positional arguments, at least `least`. False: print nothing more, return
  // status().
  bool Parse(const std::vector<std::string>& args, std::size_t least, std::size_t most);
  int status() const { return status_; }

  const std::vector<std::string>& positional() const { return positional_; }
  const boost::program_options::variables_map& values() const { return values_; }
  const std::string& format() const { return format_; }
  bool json() const { return format_ == "json"; }
  TextStyle style() const { return {streams_.terminal.width, streams_.terminal.color_out}; }

  // Plugins of --plugins, the environment and the program's own place; their diagnostics are kept
  // for Tell.
  PluginRegistry LoadPlugins();
  std::vector<std::string> directories() const;
  // False when two plugins contradict each other; that is told, and the command ends with
  // kWrongInput.
  bool PluginsAreUsable();
  // Prints on standard error what there is to say, of plugins too.
  void TellOnError(const Diagnostics& diagnostics, const Sources& sources);
  // The same; with JSON and errors also the document on standard output.
  void Tell(const Diagnostics& diagnostics, const Sources& sources);
  // A mistake on the command line itself.
  int Fail(const std::string& message, const std::string& hint = "");

 private:
  std::string usage_, about_;
  std::vector<std::string> formats_;
  Streams streams_;
  boost::program_options::options_description options_;
  boost::program_options::variables_map values_;
  std::vector<std::string> positional_, plugin_directories_;
  std::string format_ = "text";
  Diagnostics plugin_diagnostics_;
  int status_ = kDone;
};

}  // namespace shardlab
