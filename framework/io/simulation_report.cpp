#include "io/simulation_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/quantity.h"
#include "io/timeline_chart.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t Bytes0(double bytes) { return std::llround(bytes); }

const Evaluation& Evaluated(const SimulationReport& report) {
  return report.planned.explanation.evaluation;
}

double Difference(const SimulationReport& report) {
  const double step = Evaluated(report).step;
  return step > 0 ? report.simulation.makespan / step - 1 : 0;
}

// What the simulation shows and Evaluate cannot know.
std::vector<std::string> Alone(const SimulationReport& report) {
  std::vector<std::string> alone;
  const SimulateOptions& o = report.options;
  if (o.contention) alone.push_back("contention");
  if (o.blocking_sends) alone.push_back("blocking sends");
  if (!o.factors.empty()) alone.push_back("stragglers");
  if (o.jitter > 0) alone.push_back("jitter");
  return alone;
}

// What --contention plays, and what it leaves out.
constexpr const char* kContentionModel =
    "first order: messages of a pipeline rank to one other one after another; a message and "
    "the gradient reduction behind its pass at half of the rate each while both last; left out: "
    "gathers and reductions under a pass, groups of other ranks on the same port, the receiver's "
    "port";

SimulationEvent PassEvent(const SimulatedPass& pass) {
  SimulationEvent event;
  event.rank = pass.rank;
  event.chunk = pass.work.chunk;
  event.micro_batch = pass.work.micro_batch;
  event.backward_chunk = pass.work.backward_chunk;
  event.backward_micro_batch = pass.work.backward_micro_batch;
  return event;
}

std::string KindOf(const Composition& c, const SimulatedTraffic& traffic) {
  using Kind = SimulatedTraffic::Kind;
  if (traffic.kind == Kind::kOptimizer) return "optimizer";
  if (traffic.kind == Kind::kCopies) return Name(Collective::kAllReduce);
  return CollectiveOf(c, traffic.transfer);
}

Json EventJson(const SimulationEvent& event) {
  Json json = {{"rank", event.rank}, {"stream", Name(event.stream)}, {"kind", event.kind}};
  if (!event.name.empty()) json["name"] = event.name;
  // What is done once a step is of no chunk.
  json["chunk"] = event.chunk >= 0 ? Json(event.chunk) : Json();
  json["micro_batch"] = event.chunk >= 0 ? Json(event.micro_batch) : Json();
  if (event.backward_chunk >= 0) {
    json["backward_chunk"] = event.backward_chunk;
    json["backward_micro_batch"] = event.backward_micro_batch;
  }
  json["start_seconds"] = event.start;
  json["end_seconds"] = event.end;
  return json;
}

}  // namespace

std::string CollectiveOf(const Composition& c, std::int32_t transfer) {
  const TransferRow& row = c.form.transfers[static_cast<std::size_t>(transfer)];
  return Name(c.form.transfer_prices[row.price].collective);
}

std::string TensorOf(const Composition& c, std::int32_t transfer) {
  const TransferRow& row = c.form.transfers[static_cast<std::size_t>(transfer)];
  if (row.update_of.valid())
    return absl::StrCat(c.edited.program.classes[row.layer_class].name, " matrices");
  if (row.step < 0) return c.edited.derived.declared[static_cast<std::size_t>(row.declared)].name;
  const Program& program = c.edited.program;
  if (row.tensors > 1) return absl::StrCat(program.classes[row.layer_class].name, " weights");
  const Step& step = c.edited.derived.steps[static_cast<std::size_t>(row.step)];
  return program.tensor(step.source.tensor).name;
}

void EachEvent(const SimulationReport& report, bool detail,
               const std::function<void(const SimulationEvent&)>& visit) {
  const Composition& c = report.composition();
  const Simulation& s = report.simulation;
  for (const SimulatedPass& pass : s.passes) {
    SimulationEvent event = PassEvent(pass);
    const double replayed = pass.compute + pass.replay;
    if (pass.replay > 0 && !detail) {
      event.kind = "R";
      event.start = pass.compute;
      event.end = replayed;
      visit(event);
    }
    event.kind = Name(pass.work.kind);
    event.start = detail ? pass.compute : replayed;
    event.end = pass.end;
    visit(event);
    if (!detail) continue;
    EachPiece(c, c.plan, s, pass, [&](const PieceSlice& slice) {
      SimulationEvent piece = PassEvent(pass);
      const Piece& p = *slice.piece;
      piece.stream = p.stream;
      piece.start = slice.start;
      piece.end = slice.end;
      if (p.op >= 0) {
        constexpr const char* kLetters[] = {"F", "R", "I", "W"};  // [Bucket]
        const OpRow& row = c.form.ops[static_cast<std::size_t>(p.op)];
        piece.kind = kLetters[static_cast<std::size_t>(row.bucket)];
        piece.name = c.edited.program.op(row.op).name;
      } else if (p.transfer >= 0) {
        piece.kind = CollectiveOf(c, p.transfer);
        piece.name = TensorOf(c, p.transfer);
      } else {
        piece.kind = "host";
        piece.name = "the host starts kernels";
      }
      if (slice.layer_class < c.edited.program.classes.size()) {
        absl::StrAppend(&piece.name, ", ", c.edited.program.classes[slice.layer_class].name, " ",
                        slice.layer);
      }
      visit(piece);
    });
  }
  for (const SimulatedMessage& message : s.messages) {
    if (message.end <= message.start || message.to < 0) continue;
    const SimulatedPass& from = s.passes[static_cast<std::size_t>(message.from)];
    const SimulatedPass& to = s.passes[static_cast<std::size_t>(message.to)];
    for (const bool sends : {true, false}) {
      SimulationEvent event = PassEvent(sends ? from : to);
      event.stream = Stream::kSend;
      event.kind = sends ? "SEND" : "RECV";
      event.name = message.forward ? "activations" : "gradients";
      event.start = message.start;
      event.end = message.end;
      visit(event);
    }
  }
  for (const SimulatedTraffic& traffic : s.traffic) {
    SimulationEvent event;
    event.rank = traffic.rank;
    event.stream = traffic.stream;
    event.kind = KindOf(c, traffic);
    if (traffic.transfer >= 0) event.name = TensorOf(c, traffic.transfer);
    event.start = traffic.start;
    event.end = traffic.end;
    visit(event);
  }
}

Json SimulationDocument(const SimulationReport& report, EventLists events) {
  const Composition& c = report.composition();
  const Simulation& s = report.simulation;
  Json doc = {{"schema", "shardlab.simulation/1"},     {"scenario", report.planned.composed.name},
              {"schedule", c.schedule_name},           {"pipeline", c.plan.pipeline},
              {"micro_batches", c.plan.micro_batches}, {"chunks", c.plan.chunks},
              {"makespan_seconds", s.makespan},        {"pipeline_seconds", s.pipeline},
              {"bubble_fraction", s.bubble_fraction},  {"message_seconds", s.hop}};
  for (const SimulatedRank& rank : s.ranks) {
    doc["max_idle_seconds"] = std::max(doc.value("max_idle_seconds", 0.0), rank.idle);
    doc["max_own_bubble_seconds"] =
        std::max(doc.value("max_own_bubble_seconds", 0.0), rank.own_bubble);
  }
  doc["evaluation"] = {{"step_seconds", Evaluated(report).step},
                       {"peak_bytes", Bytes0(Evaluated(report).peak)},
                       {"difference", Difference(report)},
                       {"approximate", Evaluated(report).approximate || s.hides},
                       {"simulated_alone", Alone(report)}};
  doc["options"] = {{"contention", report.options.contention},
                    {"contention_seconds", s.contention_seconds},
                    {"contention_model", report.options.contention ? kContentionModel : "none"},
                    {"blocking_sends", report.options.blocking_sends},
                    {"jitter", report.options.jitter},
                    {"seed", report.options.seed},
                    {"factors", report.options.factors}};
  doc["memory"] = {{"peak_rank", s.peak_rank},
                   {"peak_bytes", Bytes0(s.ranks[static_cast<std::size_t>(s.peak_rank)].peak)},
                   {"peak_at_seconds", s.ranks[static_cast<std::size_t>(s.peak_rank)].peak_at}};
  doc["ranks"] = Json::array();
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    const SimulatedRank& rank = s.ranks[r];
    Json accounts = Json::object();
    for (int a = 0; a < kAccounts; ++a) {
      const auto account = static_cast<Account>(a);
      accounts[absl::StrCat(Name(account), "_bytes")] =
          Bytes0(account == Account::kActivations ? rank.peak_activations
                                                  : rank.fixed[static_cast<std::size_t>(a)]);
    }
    doc["ranks"].push_back({{"rank", r},
                            {"busy_seconds", rank.busy},
                            {"idle_seconds", rank.idle},
                            {"own_bubble_seconds", rank.own_bubble},
                            {"peak_in_flight_chunks", rank.peak_in_flight},
                            {"peak_in_flight_chunks_until_i", rank.peak_in_flight_until_i},
                            {"peak_bytes", Bytes0(rank.peak)},
                            {"peak_at_seconds", rank.peak_at},
                            {"at_peak", accounts}});
  }
  if (!events.passes && !events.detail) return doc;
  doc["events"] = Json::array();
  EachEvent(report, events.detail,
            [&](const SimulationEvent& event) { doc["events"].push_back(EventJson(event)); });
  return doc;
}

std::string SimulationText(const SimulationReport& report, const TextStyle& style) {
  const Composition& c = report.composition();
  const Simulation& s = report.simulation;
  const Evaluation& e = Evaluated(report);
  const auto percent = [](double fraction) {
    return absl::StrCat(Significant(100 * fraction, 3), " %");
  };
  const auto width = static_cast<std::size_t>(std::max(60, style.width));
  std::string out = absl::StrCat(style.Bold(report.planned.composed.name), "\n");
  absl::StrAppend(&out, c.plan.pipeline,
                  c.plan.pipeline == 1 ? " pipeline rank, " : " pipeline ranks, ", c.plan.chunks,
                  c.plan.chunks == 1 ? " chunk, " : " chunks, ", c.plan.micro_batches,
                  " micro-batches\n\n");
  absl::StrAppend(&out, "step ", FormatSeconds(s.makespan), ", bubble ", percent(s.bubble_fraction),
                  " of it (idle over total, mean of ranks)\n");
  const double off = Difference(report);
  const std::vector<std::string> alone = Alone(report);
  if (!alone.empty()) {
    absl::StrAppend(&out, "plan says ", FormatSeconds(e.step), ", without ", Enumerate(alone),
                    ": only played can they be seen (", off < 0 ? "" : "+", percent(off), ")\n");
  } else if (std::abs(off) < 1e-9) {
    absl::StrAppend(&out, "plan says the same\n");
  } else {
    absl::StrAppend(&out, "plan says ", FormatSeconds(e.step),
                    ", a formula for what hides under compute (", off < 0 ? "" : "+", percent(off),
                    "; approximate)\n");
  }
  const SimulatedRank& most = s.ranks[static_cast<std::size_t>(s.peak_rank)];
  absl::StrAppend(&out, "most memory ", FormatBytes(most.peak), " on pipeline rank ", s.peak_rank,
                  ", first at ", FormatSeconds(most.peak_at), "\n\n");
  absl::StrAppend(
      &out,
      style.Dim(absl::StrFormat("%6s %11s %11s %11s %9s %8s %11s %11s", "rank", "busy", "idle",
                                "own bubble", "in flight", "until I", "peak", "at")),
      "\n");
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    const SimulatedRank& rank = s.ranks[r];
    absl::StrAppend(
        &out, absl::StrFormat("%6d %11s %11s %11s %9d %8d %11s %11s\n", r, FormatSeconds(rank.busy),
                              FormatSeconds(rank.idle), FormatSeconds(rank.own_bubble),
                              rank.peak_in_flight, rank.peak_in_flight_until_i,
                              FormatBytes(rank.peak), FormatSeconds(rank.peak_at)));
  }
  absl::StrAppend(&out, "\n",
                  style.Dim(Wrapped(
                      "busy: passes, exposed traffic and the optimizer; idle: the step less that; "
                      "own bubble: idle between first and last pass; in flight: chunks",
                      0, width)));
  if (report.options.contention) {
    absl::StrAppend(&out,
                    style.Dim(Wrapped(absl::StrCat("contention, ", kContentionModel), 0, width)));
  }
  return out;
}

std::string SimulationChart(const SimulationReport& report, const TextStyle& style) {
  const Simulation& s = report.simulation;
  Chart chart;
  chart.makespan = chart.shortest = s.makespan;
  for (const SimulatedRank& rank : s.ranks) chart.in_flight.push_back(rank.peak_in_flight);
  for (const SimulatedPass& pass : s.passes) {
    const double replayed = pass.compute + pass.replay;
    if (pass.end > pass.start) chart.shortest = std::min(chart.shortest, pass.end - pass.start);
    if (pass.compute > pass.start)
      chart.slices.push_back({pass.rank, pass.start, pass.compute, "G"});
    if (pass.replay > 0) chart.slices.push_back({pass.rank, pass.compute, replayed, "R"});
    chart.slices.push_back({pass.rank, replayed, pass.end, Name(pass.work.kind)});
  }
  for (const SimulatedTraffic& traffic : s.traffic) {
    using Kind = SimulatedTraffic::Kind;
    const double finish = s.ranks[static_cast<std::size_t>(traffic.rank)].finish;
    if (traffic.kind == Kind::kGather || traffic.end <= finish) continue;
    chart.slices.push_back({traffic.rank, std::max(finish, traffic.start), traffic.end,
                            traffic.kind == Kind::kOptimizer ? "O" : "G"});
  }
  chart.legend =
      "F forward  I input gradient  W weight gradient  B both  F+B overlapped pair  R recompute  G "
      "gathers and gradient reductions that nothing hides  O optimizer  / idle; a capital begins "
      "an op";
  return ChartText(chart, style);
}

std::string SimulationEvents(const SimulationReport& report, bool detail) {
  std::string out = absl::StrFormat("%6s %-10s %-14s %6s %12s %14s %14s  %s\n", "rank", "stream",
                                    "kind", "chunk", "micro-batch", "start", "end", "what");
  const auto pair = [](int first, int second) {
    return first < 0 ? "" : second < 0 ? absl::StrCat(first) : absl::StrCat(first, "+", second);
  };
  EachEvent(report, detail, [&](const SimulationEvent& e) {
    std::string row = absl::StrFormat("%6d %-10s %-14s %6s %12s %14s %14s  %s", e.rank,
                                      Name(e.stream), e.kind, pair(e.chunk, e.backward_chunk),
                                      pair(e.micro_batch, e.backward_micro_batch),
                                      FormatSeconds(e.start), FormatSeconds(e.end), e.name);
    row.erase(row.find_last_not_of(' ') + 1);
    absl::StrAppend(&out, row, "\n");
  });
  return out;
}

}  // namespace shardlab
