#include "app/schedule_command.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "io/quantity.h"
#include "io/schedule_study.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;

constexpr double kMostSeconds = 1e15;  // sums of so many stay numbers

// A bare number is in seconds; "5 ms" is read too.
bool ReadSeconds(const std::string& text, double* seconds) {
  double number = 0;
  if (absl::SimpleAtod(text, &number)) {
    *seconds = number;
    return number >= 0 && number <= kMostSeconds;
  }
  const QuantityResult read = ParseQuantity(text, Unit::kSeconds);
  *seconds = read.value;
  return read.ok() && read.value <= kMostSeconds;
}

struct TimeOption {
  const char *name, *about;
  double* value;
};

}  // namespace

int ScheduleCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line(
      "schedule NAME --ranks P --micro-batches M [--chunks V] [--group G] [--gantt] [--csv]",
      "A pipeline schedule alone, with given times and no model. Times are seconds of a whole rank "
      "and\nmicro-batch; a chunk takes its share of them.",
      streams);
  ScheduleRequest request;
  std::string order;
  int group = 0;
  const std::vector<TimeOption> times = {
      {"forward", "seconds of a forward (default 1)", &request.times.forward},
      {"input-gradient", "seconds of an input gradient (default 1)", &request.times.input_gradient},
      {"weight-gradient", "seconds of a weight gradient (default 1)",
       &request.times.weight_gradient},
      {"overlapped-pair", "seconds of a forward and a backward that overlap (default: their sum)",
       &request.times.pair},
      {"recompute", "seconds of recomputation before each backward (default 0)",
       &request.times.recompute},
      {"hop", "seconds of a message between ranks (default 0)", &request.hop}};
  line.options().add_options()("ranks", po::value(&request.shape.ranks), "pipeline ranks")(
      "micro-batches", po::value(&request.shape.micro_batches), "micro-batches of a step")(
      "chunks", po::value(&request.shape.chunks), "stages per rank (default: the schedule's)")(
      "group", po::value(&group),
      "micro-batches that a chunk does in a row, where a schedule has groups")(
      "order", po::value(&order), "a schedule read from a file: which")(
      "gantt", "a chart, one line a rank")("csv", "the order alone, as PyTorch's schedule CSV")(
      "events", "every op with its start and end");
  for (const TimeOption& time : times)
    line.options().add_options()(time.name, po::value<std::string>(), time.about);
  if (!line.Parse(args, 1, 1)) return line.status();

  const auto given = [&line](const char* option) { return line.values().count(option) != 0; };
  request.name = line.positional()[0];
  for (const char* needed : {"ranks", "micro-batches"}) {
    if (!given(needed)) {
      return line.Fail(absl::StrCat("--", needed, " is missing"),
                       "write shardlab schedule NAME --ranks P --micro-batches M");
    }
  }
  const std::vector<std::pair<const char*, int>> counts = {
      {"ranks", request.shape.ranks},
      {"micro-batches", request.shape.micro_batches},
      {"chunks", request.shape.chunks},
      {"group", given("group") ? group : 1}};
  for (const auto& [name, value] : counts) {
    const int most = std::string(name) == "ranks"    ? 1 << 14
                     : std::string(name) == "chunks" ? 1 << 12
                                                     : 1 << 20;
    if (value >= 1 && value <= most) continue;
    return line.Fail(absl::StrCat("--", name, " must be from 1 to ", most, ", not ", value));
  }
  for (const TimeOption& time : times) {
    if (!given(time.name)) continue;
    const std::string& text = line.values()[time.name].as<std::string>();
    if (!ReadSeconds(text, time.value)) {
      return line.Fail(absl::StrCat("--", time.name, " must be a time, not \"", text, "\""),
                       "write seconds, 0.5, or a quantity, \"500 ms\"");
    }
  }
  if (given("csv") && (given("gantt") || given("events") || line.json())) {
    return line.Fail("--csv writes the order and nothing else",
                     "leave out --gantt, --events and --format json, or --csv");
  }
  request.chunks_given = given("chunks");
  if (given("group")) request.group = group;
  if (given("order")) request.order = order;

  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  Diagnostics diagnostics;
  const std::optional<ScheduleStudy> study = StudySchedule(registry, request, &diagnostics);
  if (!study) {
    line.Tell(diagnostics, {});
    return kWrongInput;
  }
  if (line.json()) {
    streams.out << StudyDocument(*study, given("events")).dump(2) << "\n";
  } else if (given("csv")) {
    streams.out << StudyCsv(*study);
  } else {
    streams.out << StudyText(*study, line.style());
    if (given("gantt")) streams.out << "\n" << StudyChart(*study, line.style());
    if (given("events")) streams.out << "\n" << StudyEvents(*study);
  }
  line.TellOnError(diagnostics, {});
  return kDone;
}

}  // namespace shardlab
