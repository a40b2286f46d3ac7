#pragma once
// Other processes that do parts of a command, each with the same arguments, files and plugins: how
// the command sees them. What is asked and answered is bytes; who brings them there is not known
// here (mpi/ranks.h is).
//
//   if (Questions* questions = streams.terminal.questions) return ServeSweep(sweep, questions);
//   if (Workers* workers = streams.terminal.workers) options.elsewhere = ...AskForPiece(...)

#include <cstdint>
#include <stdexcept>
#include <string>

#include "io/search_run.h"
#include "io/sweep_run.h"

namespace shardlab {

// Where the command runs: on the side that asks.
class Workers {
 public:
  virtual ~Workers() = default;
  // So many questions may wait for their answers; at least 1.
  virtual int slots() const = 0;
  // Waits for the answer. Slots are used by different threads, each by one at a time.
  virtual std::string Ask(int slot, const std::string& question) = 0;
};

// On the side that answers, in turn.
class Questions {
 public:
  virtual ~Questions() = default;
  // False: there will be no more.
  virtual bool Next(std::string* question) = 0;
  virtual void Answer(const std::string& answer) = 0;
};

// A worker cannot do its part.
class WorkerFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The answer that says why there is none.
std::string Refused(const std::string& why);

// `of` tells one sweep or search from another: it names the scenario and the program's version.
std::string WorkOf(const Scenario& scenario);

// Throw WorkerFailure.
SweepPiece AskForPiece(Workers* workers, int slot, const std::string& of, std::int64_t first,
                       std::int64_t past, bool documents);
SearchResult AskForGroup(Workers* workers, int slot, const std::string& of, int group,
                         std::int64_t first, double to_beat);

// Answer until there are no more questions.
void ServeSweep(const Sweep& sweep, const std::string& of, Questions* questions);
void ServeSearch(const PluginRegistry& registry, const SearchGrid& grid,
                 const SearchOptions& options, const std::string& of, Questions* questions);

}  // namespace shardlab
