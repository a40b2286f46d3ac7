#include "io/trace.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

std::string Quoted(const std::string& text) { return Json(text).dump(); }

// Whole nanoseconds: rounding keeps the order of instants, so that what nests or follows in the
// step does in the trace.
std::int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

void AppendMicroseconds(std::int64_t ns, std::string* out) {
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(ns / 1000),
                                 static_cast<int>(ns % 1000));
  out->append(text, static_cast<std::size_t>(size));
}

struct Slice {
  int track = 0;
  std::int64_t start = 0, end = 0;
  std::string head;  // JSON of name, category and arguments
};

// An end of an arrow; it belongs to the slice around it.
struct FlowEnd {
  bool out = true;
  int id = 0, track = 0;
  std::int64_t at = 0;
};

struct Track {
  std::string name;
  int order = 0;
  std::int64_t end = 0;
};

// What one device of a pipeline rank shows; devices of one rank show the same.
struct RankTrace {
  std::vector<Slice> slices;
  std::vector<Track> tracks;
  std::vector<FlowEnd> flows;
};

class Tracer {
 public:
  Tracer(const SimulationReport& report, const TraceOptions& options)
      : report_(report),
        c_(report.composition()),
        s_(report.simulation),
        options_(options),
        ranks_(s_.ranks.size()) {
    for (RankTrace& rank : ranks_) rank.tracks.push_back({"compute", 0, 0});
  }

  std::string Write() {
    Passes();
    Messages();
    Traffic();
    out_ = "{\"traceEvents\":[\n";
    for (const int device : options_.devices)
      shown_.insert({ReplicaOf(device), PipelineRankOf(c_, c_.plan, device)});
    for (const int device : options_.devices) Device(device);
    if (options_.devices.size() > 0) out_.erase(out_.size() - 2, 1);  // the last comma
    absl::StrAppend(&out_, "],\"displayTimeUnit\":\"ms\",\"otherData\":", Metadata().dump(), "}\n");
    return std::move(out_);
  }

 private:
  static std::size_t At(int i) { return static_cast<std::size_t>(i); }

  // A free track of this stream: what two things at once need is a second one.
  int TrackFor(int rank, const std::string& name, int order, std::int64_t start, std::int64_t end) {
    std::vector<Track>& tracks = ranks_[At(rank)].tracks;
    int alike = 0;
    for (std::size_t i = 0; i < tracks.size(); ++i) {
      if (tracks[i].order / 8 != order) continue;
      ++alike;
      if (tracks[i].end > start) continue;
      tracks[i].end = end;
      return static_cast<int>(i);
    }
    tracks.push_back({alike == 0 ? name : absl::StrCat(name, " ", alike + 1),
                      order * 8 + std::min(alike, 7), end});
    return static_cast<int>(tracks.size()) - 1;
  }

  // Beside what the passes block for: the data-parallel group has a communicator of its own.
  int DataTrack(int rank, Stream stream, std::int64_t start, std::int64_t end) {
    return TrackFor(rank, absl::StrCat(Name(stream), ", data"), 8 + static_cast<int>(stream), start,
                    end);
  }

  static std::string Head(const std::string& name, const char* category, const std::string& args) {
    return absl::StrCat("\"name\":", Quoted(name), ",\"cat\":\"", category, "\"",
                        args.empty() ? "" : absl::StrCat(",\"args\":{", args, "}"));
  }

  // Names repeat: each is quoted once.
  const std::string& PieceHead(const PieceSlice& slice) {
    const Piece& p = *slice.piece;
    std::string& head = heads_[{slice.layer_class, p.op, p.transfer}];
    if (!head.empty()) return head;
    if (p.op >= 0) {
      const OpRow& row = c_.form.ops[At(p.op)];
      constexpr const char* kPasses[] = {"F", "R", "I", "W"};  // [Bucket]
      head = Head(absl::StrCat(c_.edited.program.op(row.op).name, " ",
                               kPasses[static_cast<std::size_t>(row.bucket)]),
                  "op", "");
    } else if (p.transfer >= 0) {
      head = Head(CollectiveOf(c_, p.transfer), "collective",
                  absl::StrCat("\"tensor\":", Quoted(TensorOf(c_, p.transfer))));
    } else {
      head = Head("host starts kernels", "wait", "");
    }
    return head;
  }

  void Passes() {
    for (const SimulatedPass& pass : s_.passes) {
      const Work& work = pass.work;
      std::vector<Slice>& slices = ranks_[At(pass.rank)].slices;
      const bool pair = work.kind == WorkKind::kFB;
      std::string args =
          absl::StrCat("\"chunk\":", work.chunk, ",\"micro_batch\":", work.micro_batch);
      if (pair) {
        absl::StrAppend(&args, ",\"backward_chunk\":", work.backward_chunk,
                        ",\"backward_micro_batch\":", work.backward_micro_batch);
      }
      const std::string name =
          absl::StrCat(Name(work.kind), work.micro_batch,
                       pair ? absl::StrCat("+", work.backward_micro_batch) : "",
                       c_.plan.chunks > 1 ? absl::StrCat(" chunk ", work.chunk) : "");
      Slice slice{0, Nanoseconds(pass.compute), Nanoseconds(pass.end), Head(name, "pass", args)};
      ranks_[At(pass.rank)].tracks[0].end = slice.end;
      slices.push_back(std::move(slice));
      if (options_.detail) {
        Detail(pass);
      } else if (pass.replay > 0) {
        slices.push_back({0, Nanoseconds(pass.compute), Nanoseconds(pass.compute + pass.replay),
                          Head("R", "recompute", "")});
      }
    }
  }

  // Inside a pass: its layers, inside them ops; what a pass blocks for is on the track of its
  // stream.
  void Detail(const SimulatedPass& pass) {
    std::vector<Slice>& slices = ranks_[At(pass.rank)].slices;
    const std::size_t classes = c_.edited.program.classes.size();
    std::size_t layer_slice = 0;
    std::pair<std::size_t, int> last(classes + 1, -1);
    EachPiece(c_, c_.plan, s_, pass, [&](const PieceSlice& piece) {
      const std::int64_t start = Nanoseconds(piece.start), end = Nanoseconds(piece.end);
      const Stream stream = piece.piece->stream;
      if (piece.layer < 0) {
        const int track = DataTrack(pass.rank, stream, start, end);
        slices.push_back({track, start, end, PieceHead(piece)});
        return;
      }
      const std::pair<std::size_t, int> layer(piece.layer_class, piece.layer);
      if (layer != last) {
        last = layer;
        layer_slice = slices.size();
        std::string name = piece.layer_class < classes
                               ? c_.edited.program.classes[piece.layer_class].name
                               : "once a rank";
        slices.push_back({0, start, end, Head(absl::StrCat(name, " ", piece.layer), "layer", "")});
      }
      slices[layer_slice].end = end;
      const int track = stream == Stream::kCompute ? 0
                                                   : TrackFor(pass.rank, Name(stream),
                                                              static_cast<int>(stream), start, end);
      slices.push_back({track, start, end, PieceHead(piece)});
    });
  }

  void Messages() {
    std::vector<std::size_t> order(s_.messages.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return s_.messages[a].start < s_.messages[b].start;
    });
    for (const std::size_t i : order) {
      const SimulatedMessage& message = s_.messages[i];
      if (message.to < 0) continue;
      const std::int64_t start = Nanoseconds(message.start), end = Nanoseconds(message.end);
      const auto id = static_cast<int>(i);
      for (const bool sends : {true, false}) {
        const SimulatedPass& pass = s_.passes[At(sends ? message.from : message.to)];
        RankTrace& rank = ranks_[At(pass.rank)];
        if (end == start) {  // in no time: an arrow from pass to pass
          if (sends) rank.flows.push_back({true, id, 0, Nanoseconds(pass.end) - 1});
        } else {
          const std::string args =
              absl::StrCat("\"micro_batch\":", pass.work.micro_batch, ",\"carries\":\"",
                           message.forward ? "activations" : "gradients", "\"");
          const int track = TrackFor(pass.rank, sends ? "send" : "recv", sends ? 4 : 5, start, end);
          rank.slices.push_back(
              {track, start, end, Head(sends ? "SEND" : "RECV", "message", args)});
          if (sends) rank.flows.push_back({true, id, track, start});
        }
        if (!sends) rank.flows.push_back({false, id, 0, Nanoseconds(pass.compute)});
      }
    }
  }

  void Traffic() {
    std::vector<const SimulatedTraffic*> sorted;
    for (const SimulatedTraffic& traffic : s_.traffic) sorted.push_back(&traffic);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto* a, const auto* b) { return a->start < b->start; });
    for (const SimulatedTraffic* t : sorted) {
      using Kind = SimulatedTraffic::Kind;
      const std::int64_t start = Nanoseconds(t->start), end = Nanoseconds(t->end);
      const bool computes = t->stream == Stream::kCompute;
      const std::string name = t->kind == Kind::kOptimizer ? "optimizer"
                               : t->kind == Kind::kCopies  ? Name(Collective::kAllReduce)
                                                           : CollectiveOf(c_, t->transfer);
      std::string args;
      if (t->transfer >= 0) args = absl::StrCat("\"tensor\":", Quoted(TensorOf(c_, t->transfer)));
      // Beside what the passes block for: the data-parallel group has a communicator of its own.
      const int track = computes ? 0
                                 : TrackFor(t->rank, absl::StrCat(Name(t->stream), ", data"),
                                            8 + static_cast<int>(t->stream), start, end);
      ranks_[At(t->rank)].slices.push_back(
          {track, start, end, Head(name, computes ? "optimizer" : "collective", args)});
    }
  }

  void Device(int device) {
    const int r = PipelineRankOf(c_, c_.plan, device);
    const RankTrace& rank = ranks_[At(r)];
    const std::string pid = absl::StrCat("\"pid\":", device);
    const auto meta = [&](const char* what, int tid, const std::string& args) {
      absl::StrAppend(&out_, "{\"ph\":\"M\",\"name\":\"", what, "\",", pid, ",\"tid\":", tid,
                      ",\"args\":{", args, "}},\n");
    };
    meta("process_name", 0,
         absl::StrCat("\"name\":\"device ", device, ", pipeline rank ", r, "\""));
    meta("process_sort_index", 0, absl::StrCat("\"sort_index\":", device));
    for (std::size_t t = 0; t < rank.tracks.size(); ++t) {
      const auto tid = static_cast<int>(t);
      meta("thread_name", tid, absl::StrCat("\"name\":", Quoted(rank.tracks[t].name)));
      meta("thread_sort_index", tid, absl::StrCat("\"sort_index\":", rank.tracks[t].order));
    }
    for (const Slice& slice : rank.slices) {
      absl::StrAppend(&out_, "{\"ph\":\"X\",", slice.head, ",", pid, ",\"tid\":", slice.track,
                      ",\"ts\":");
      AppendMicroseconds(slice.start, &out_);
      out_ += ",\"dur\":";
      AppendMicroseconds(slice.end - slice.start, &out_);
      out_ += "},\n";
    }
    for (const FlowEnd& end : rank.flows) Flow(end, device);
    Counters(device, s_.ranks[At(r)]);
  }

  // Arrows stay between the devices at the same place of their pipeline ranks.
  // One whose other end is not written is left out.
  void Flow(const FlowEnd& end, int device) {
    const SimulatedMessage& message = s_.messages[At(end.id)];
    const int other = s_.passes[At(end.out ? message.to : message.from)].rank;
    if (shown_.count({ReplicaOf(device), other}) == 0) return;
    absl::StrAppend(&out_, "{\"ph\":\"", end.out ? "s\"," : "f\",\"bp\":\"e\",",
                    "\"name\":\"message\",\"cat\":\"message\",\"id\":\"", ReplicaOf(device), ".",
                    end.id, "\",\"pid\":", device, ",\"tid\":", end.track, ",\"ts\":");
    AppendMicroseconds(end.at, &out_);
    out_ += "},\n";
  }

  int ReplicaOf(int device) const {
    int replica = 0, weight = 1, rest = device;
    for (const AtomId atom : c_.edited.mesh.rank_order()) {
      const int size = atom.valid() ? c_.plan.atom[atom.index()] : c_.plan.pipeline;
      if (atom.valid()) {
        replica += weight * (rest % size);
        weight *= size;
      }
      rest /= size;
    }
    return replica;
  }

  void Counters(int device, const SimulatedRank& rank) {
    for (const MemorySample& sample : rank.samples) {
      absl::StrAppend(&out_, "{\"ph\":\"C\",\"name\":\"memory\",\"pid\":", device, ",\"ts\":");
      AppendMicroseconds(Nanoseconds(sample.at), &out_);
      out_ += ",\"args\":{";
      for (int a = 0; a < kAccounts; ++a) {
        const auto account = static_cast<Account>(a);
        const double bytes =
            account == Account::kActivations ? sample.activations : rank.fixed[At(a)];
        absl::StrAppend(&out_, a == 0 ? "" : ",", "\"", Name(account),
                        "\":", static_cast<std::int64_t>(std::llround(bytes)));
      }
      out_ += "}},\n";
    }
  }

  Json Metadata() const {
    return {{"scenario", report_.planned.composed.name},
            {"resolved", report_.planned.composed.resolved},
            {"schedule", c_.schedule_name},
            {"makespan_seconds", s_.makespan},
            {"contention", report_.options.contention},
            {"jitter", report_.options.jitter},
            {"seed", report_.options.seed}};
  }

  const SimulationReport& report_;
  const Composition& c_;
  const Simulation& s_;
  const TraceOptions& options_;
  std::vector<RankTrace> ranks_;
  std::set<std::pair<int, int>> shown_;  // (replica, pipeline rank) of the devices
  std::map<std::tuple<std::size_t, std::int32_t, std::int32_t>, std::string> heads_;
  std::string out_;
};

}  // namespace

int PipelineRankOf(const Composition& c, const Plan& plan, int device) {
  for (const AtomId atom : c.edited.mesh.rank_order()) {
    const int size = atom.valid() ? plan.atom[atom.index()] : plan.pipeline;
    if (!atom.valid()) return device % size;
    device /= size;
  }
  return 0;
}

std::vector<int> DevicesShown(const Composition& c, const Plan& plan, int first) {
  std::vector<int> devices;
  if (first > 0) {
    for (int device = 0; device < first; ++device) devices.push_back(device);
    return devices;
  }
  int stride = 1;
  for (const AtomId atom : c.edited.mesh.rank_order()) {
    if (!atom.valid()) break;
    stride *= plan.atom[atom.index()];
  }
  for (int r = 0; r < plan.pipeline; ++r) devices.push_back(r * stride);
  return devices;
}

std::string TraceJson(const SimulationReport& report, const TraceOptions& options) {
  return Tracer(report, options).Write();
}

}  // namespace shardlab
