#include "io/plan_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

struct AccountMark {
  Account account;
  char letter;
  const char* color;
  const char* word;
};
constexpr std::array<AccountMark, kAccounts> kMarks = {
    {{Account::kParameters, 'P', "34", "parameters"},
     {Account::kGradients, 'G', "36", "gradients"},
     {Account::kOptimizer, 'O', "35", "optimizer"},
     {Account::kActivations, 'A', "33", "activations"},
     {Account::kGathered, 'g', "32", "gathered weights"},
     {Account::kTransient, 't', "37", "transient"},
     {Account::kFragmentation, 'f', "90", "fragmentation"},
     {Account::kOutsideAllocator, 'x', "90", "outside the allocator"}}};

std::string Percent(double fraction, int digits = 3) {
  return absl::StrCat(Significant(100 * fraction, digits), " %");
}

std::string Padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

class Report {
 public:
  Report(const PlannedScenario& planned, const Json& doc, const TextStyle& style)
      : planned_(planned),
        c_(*planned.composed.composition),
        x_(planned.explanation),
        doc_(doc),
        style_(style) {}

  std::string Make(const std::optional<Suggestion>& suggestion) {
    Verdict();
    PlanLines();
    Memory();
    Time();
    Traffic();
    Totals();
    Largest();
    Next(suggestion);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kIndent = 10;
  // Its tables need 80 columns; a narrower terminal wraps them.
  std::size_t Width() const { return static_cast<std::size_t>(std::max(80, style_.width)); }

  void Section(const char* name, const std::string& text) {
    absl::StrAppend(&out_, style_.Bold(Padded(name, kIndent)), Wrapped(text, kIndent, Width()));
  }

  // What the title does not say: the accounting, and what the command line changed.
  std::string Heading() const {
    std::string text = absl::StrCat("  (", c_.rules.name, " accounting");
    for (const std::string& set : planned_.composed.overrides) {
      absl::StrAppend(&text, ", ", Printable(set));
    }
    return text + ")";
  }

  // A name is the user's text; a terminal must not obey it.
  static std::string Printable(std::string text) {
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    }
    return text;
  }

  void Verdict() {
    const Json& memory = doc_["memory"];
    const std::string verdict = memory["verdict"];
    absl::StrAppend(&out_, style_.Bold(Printable(planned_.composed.name)), style_.Dim(Heading()),
                    "\n\n");
    const double peak = memory["peak_bytes"], capacity = memory["capacity_bytes"];
    const std::string where =
        c_.plan.pipeline > 1 ? absl::StrCat(" on pipeline rank ", memory["worst_rank"].get<int>())
                             : "";
    std::string word, rest;
    if (peak <= capacity && verdict == "does_not_fit") {
      const double host = memory["host"]["peak_bytes"], room = memory["host"]["capacity_bytes"];
      word = style_.Red("DOES NOT FIT");
      rest = absl::StrCat(FormatBytes(host), " in the host's memory, ", FormatBytes(host - room),
                          " over the ", FormatBytes(room), " of a device's share");
    } else if (verdict == "does_not_fit") {
      word = style_.Red("DOES NOT FIT");
      rest = absl::StrCat(FormatBytes(peak), where, ", ", FormatBytes(peak - capacity),
                          " over the ", FormatBytes(capacity), " of a device");
    } else {
      word = verdict == "tight" ? style_.Yellow("TIGHT") : style_.Green("FITS");
      rest = absl::StrCat(FormatBytes(peak), where, " of ", FormatBytes(capacity), " (",
                          Percent(1 - peak / capacity), " free)");
    }
    const Json& rates = doc_["throughput"];
    absl::StrAppend(&out_, word, "  ", rest, "\n");
    absl::StrAppend(
        &out_, FormatSeconds(doc_["time"]["step_seconds"]), " a step, ", Percent(rates["mfu"]),
        " MFU (", rates["mfu_convention"].get<std::string>(), "), ",
        WithThousands(std::llround(rates["tokens_per_second_per_device"].get<double>())),
        " tokens/s per device\n\n");
  }

  void PlanLines() {
    const Json& plan = doc_["plan"];
    const ModelFacts& facts = c_.edited.program.facts;
    const Machine& machine = c_.hardware->machine();
    Section("plan", absl::StrCat(facts.name, ", ", WithThousands(std::llround(facts.parameters)),
                                 " parameters, on ", machine.devices, " x ", machine.name));
    std::string axes;
    for (const Axis& axis : c_.edited.mesh.axes()) {
      if (axis.borrows) continue;
      absl::StrAppend(&axes, axes.empty() ? "" : " x ", axis.name, " ", c_.plan.Size(axis.atoms));
      if (axis.role == AxisRole::kTensor && plan["sequence_parallel"].get<bool>()) {
        axes += " (sequence parallel)";
      }
      // Borrowed ranks do not multiply the world.
      for (const Axis& other : c_.edited.mesh.axes()) {
        const bool inside = other.borrows && (other.atoms & ~axis.atoms) == 0;
        if (!inside || c_.plan.Size(other.atoms) == 1) continue;
        absl::StrAppend(&axes, " (of them ", other.name, " ", c_.plan.Size(other.atoms), ")");
      }
    }
    absl::StrAppend(&axes, axes.empty() ? "" : " x ", "pipeline ", c_.plan.pipeline);
    if (c_.plan.pipeline > 1) absl::StrAppend(&axes, " (", c_.schedule_name, ")");
    AppendStraddling(&axes);
    if (plan["zero_stage"].get<int>() > 0)
      absl::StrAppend(&axes, ", ZeRO-", plan["zero_stage"].get<int>());
    if (plan["offload"] != "none")
      absl::StrAppend(&axes, ", ", plan["offload"].get<std::string>(), " on the host");
    if (plan["recompute"]["mode"] != "none")
      absl::StrAppend(&axes, ", recomputation ", plan["recompute"]["mode"].get<std::string>());
    absl::StrAppend(&axes, "; ", c_.plan.micro_batches, " micro-batch",
                    c_.plan.micro_batches == 1 ? "" : "es", " of ", c_.plan.micro_batch_size, " x ",
                    ShortNumber(c_.training.sequence_length), " tokens");
    Section("", axes);
    out_ += "\n";
  }

  // Experts may borrow ranks of several axes at once.
  void AppendStraddling(std::string* axes) const {
    const std::vector<Axis>& all = c_.edited.mesh.axes();
    for (const Axis& axis : all) {
      if (!axis.borrows || c_.plan.Size(axis.atoms) == 1) continue;
      std::string lenders;
      bool inside = false;
      for (const Axis& other : all) {
        if (other.borrows) continue;
        inside |= (axis.atoms & ~other.atoms) == 0;
        if (c_.plan.Size(axis.atoms & other.atoms) > 1)
          absl::StrAppend(&lenders, lenders.empty() ? "" : " x ", other.name);
      }
      if (!inside)
        absl::StrAppend(axes, ", ", axis.name, " ", c_.plan.Size(axis.atoms), " of ", lenders);
    }
  }

  void Memory() {
    const double capacity = x_.evaluation.capacity;
    const double scale = std::max(capacity, x_.evaluation.peak);
    const std::size_t bar = std::min<std::size_t>(Width() - kIndent - 24, 64);
    const auto line =
        static_cast<std::size_t>(std::llround(capacity / scale * static_cast<double>(bar)));
    out_ += style_.Bold("memory") + "\n";
    // Long pipelines: equal neighbours say nothing new.
    std::size_t equal = 0;
    for (std::size_t r = 0; r < x_.ranks.size(); ++r) {
      const RankMemory& memory = x_.ranks[r].memory;
      const bool middle = r > 0 && r + 1 < x_.ranks.size() && x_.ranks.size() > 9;
      if (middle && memory.bytes == x_.ranks[r - 1].memory.bytes &&
          static_cast<int>(r) != x_.evaluation.worst_rank) {
        ++equal;
        continue;
      }
      FlushEqual(&equal);
      absl::StrAppend(&out_, Padded(absl::StrCat("  rank ", r), kIndent),
                      Bar(memory, scale, bar, line), " ",
                      memory.total > capacity ? style_.Red(FormatBytes(memory.total))
                                              : FormatBytes(memory.total));
      if (memory.in_flight != 1)
        absl::StrAppend(
            &out_, style_.Dim(absl::StrCat("  ", ShortNumber(memory.in_flight), " in flight")));
      out_ += "\n";
    }
    FlushEqual(&equal);
    std::string legend, items;
    const auto add = [&](const std::string& item) {
      if (!items.empty() && kIndent + items.size() + 2 + item.size() > Width()) {
        absl::StrAppend(&legend, std::string(kIndent, ' '), items, "\n");
        items.clear();
      }
      absl::StrAppend(&items, items.empty() ? "" : "  ", item);
    };
    for (const AccountMark& mark : kMarks) {
      double most = 0;
      for (const RankExplanation& rank : x_.ranks)
        most = std::max(most, rank.memory.bytes[static_cast<std::size_t>(mark.account)]);
      if (most > 0)
        add(absl::StrCat(std::string(1, mark.letter), " ", mark.word, " ",
                         FormatBytes(Worst(mark.account))));
    }
    add(absl::StrCat("| ", FormatBytes(capacity)));
    absl::StrAppend(&out_, legend, std::string(kIndent, ' '), items, "\n");
    Host();
    Initialisation();
    out_ += "\n";
  }

  // Told where a step would fit and its beginning does not, or needs more.
  void Initialisation() {
    double most = 0;
    for (const RankExplanation& rank : x_.ranks) most = std::max(most, rank.first.initialisation);
    if (most <= x_.evaluation.peak) return;
    absl::StrAppend(&out_, std::string(kIndent, ' '), "initialisation peak ", FormatBytes(most),
                    most > x_.evaluation.capacity ? ", more than a device has\n" : "\n");
  }

  void Host() {
    const Evaluation& e = x_.evaluation;
    if (e.host_peak == 0) return;
    absl::StrAppend(&out_, std::string(kIndent, ' '), "host ", FormatBytes(e.host_peak), " of ",
                    e.host_capacity > 0 ? FormatBytes(e.host_capacity) : "a size not stated",
                    ", a device's share\n");
  }

  double Worst(Account account) const {
    return x_.ranks[static_cast<std::size_t>(x_.evaluation.worst_rank)]
        .memory.bytes[static_cast<std::size_t>(account)];
  }

  void FlushEqual(std::size_t* equal) {
    if (*equal > 0)
      absl::StrAppend(&out_, std::string(kIndent, ' '),
                      style_.Dim(absl::StrCat("(", *equal, " more alike)")), "\n");
    *equal = 0;
  }

  std::string Bar(const RankMemory& memory, double scale, std::size_t width,
                  std::size_t line) const {
    std::string out;
    double sum = 0;
    std::size_t drawn = 0;
    const auto put = [&](std::size_t until, char letter, const char* color) {
      std::string part;
      for (; drawn < until; ++drawn) {
        if (drawn == line) {
          if (!part.empty()) out += style_.Paint(color, part);
          part.clear();
          out += style_.Bold("|");
        }
        part += letter;
      }
      if (!part.empty()) out += style_.Paint(color, part);
    };
    for (const AccountMark& mark : kMarks) {
      sum += memory.bytes[static_cast<std::size_t>(mark.account)];
      put(static_cast<std::size_t>(std::llround(sum / scale * static_cast<double>(width))),
          mark.letter, mark.color);
    }
    put(width, '.', "90");
    if (line >= width) out += style_.Bold("|");
    return out;
  }

  void Time() {
    const TimeParts& t = x_.evaluation.time;
    struct Part {
      std::string name;
      double seconds;
    };
    std::vector<Part> parts = {{"forward", t.forward},
                               {"backward", t.backward},
                               {"recompute", t.recompute},
                               {"optimizer", t.optimizer}};
    for (std::size_t r = 0; r < kAxisRoles; ++r) {
      double seconds = t.exposed[r];
      if (static_cast<AxisRole>(r) == AxisRole::kPipeline) seconds += x_.exposed_pipeline;
      parts.push_back({absl::StrCat(Name(static_cast<AxisRole>(r)), " traffic"), seconds});
    }
    parts.push_back({"bubble", t.bubble - x_.exposed_pipeline});
    out_ += style_.Bold("time");
    absl::StrAppend(&out_, "      of pipeline rank ", x_.evaluation.time_rank, ", which ends last",
                    x_.evaluation.approximate ? style_.Dim("  (overlap estimated)") : "", "\n");
    const double step = x_.evaluation.step;
    const std::size_t bar = std::min<std::size_t>(Width() - 46, 40);
    for (const Part& part : parts) {
      if (part.seconds <= 0) continue;
      const auto length =
          static_cast<std::size_t>(std::llround(part.seconds / step * static_cast<double>(bar)));
      absl::StrAppend(
          &out_, std::string(kIndent, ' '), Padded(part.name, 17),
          absl::StrFormat("%10s %7s  ", FormatSeconds(part.seconds), Percent(part.seconds / step)),
          style_.Paint("34", std::string(std::max<std::size_t>(length, 1), '#')), "\n");
    }
    if (t.bubble > 0 && c_.plan.pipeline > 1) {
      const std::string own =
          x_.own_bubble > 1e-9 * step ? FormatSeconds(x_.own_bubble) : std::string("none");
      absl::StrAppend(&out_, std::string(kIndent, ' '),
                      style_.Dim(absl::StrCat("idle until the step ends; own bubble, first to last "
                                              "op: ",
                                              own)),
                      "\n");
    }
    double hidden = 0;
    for (const double s : t.hidden) hidden += s;
    if (hidden > 0)
      absl::StrAppend(
          &out_, std::string(kIndent, ' '),
          style_.Dim(absl::StrCat(FormatSeconds(hidden), " of traffic hides behind compute")),
          "\n");
    out_ += "\n";
  }

  // By axis, collective and link; what a person wants to know of fifty collectives.
  void Traffic() {
    if (x_.transfers.empty()) return;
    struct Line {
      double calls = 0, bytes = 0, seconds = 0, exposed = 0;
      int group = 1;
      bool declared = false;
    };
    std::vector<std::pair<std::array<std::string, 3>, Line>> lines;
    for (const TransferEntry& t : x_.transfers) {
      const std::array<std::string, 3> key = {
          t.axis, t.declared ? absl::StrCat(t.collective, " *") : t.collective, t.tier};
      auto it =
          std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == key; });
      if (it == lines.end()) it = lines.insert(lines.end(), {key, Line()});
      it->second.calls += t.count;
      it->second.bytes += t.bytes;
      it->second.seconds += t.seconds;
      it->second.exposed += t.exposed_seconds;
      it->second.group = t.group_size;
      it->second.declared |= t.declared;
    }
    absl::StrAppend(&out_, style_.Bold("traffic"), "   of one device of pipeline rank ",
                    x_.transfer_rank, ", per step\n");
    // A narrow terminal goes without the sum of what each takes: what is exposed is what counts.
    const bool wide = Width() >= 94;
    const auto columns = [&](const std::string& axis, const std::string& collective,
                             const std::string& ranks, const std::string& link,
                             const std::string& calls, const std::string& sent,
                             const std::string& takes, const std::string& exposed) {
      std::string row = absl::StrFormat("  %-10s %-15s %5s %-10s %9s %10s", axis, collective, ranks,
                                        link, calls, sent);
      if (wide) absl::StrAppend(&row, absl::StrFormat(" %11s", takes));
      return absl::StrCat(row, absl::StrFormat(" %11s", exposed));
    };
    absl::StrAppend(&out_,
                    style_.Dim(columns("axis", "collective", "ranks", "link", "calls", "sent",
                                       "takes", "exposed")),
                    "\n");
    bool declared = false;
    for (const auto& [key, line] : lines) {
      declared |= line.declared;
      absl::StrAppend(&out_,
                      columns(key[0], key[1], absl::StrCat(line.group), key[2],
                              WithThousands(std::llround(line.calls)), FormatBytes(line.bytes),
                              FormatSeconds(line.seconds), FormatSeconds(line.exposed)),
                      "\n");
    }
    if (declared)
      absl::StrAppend(&out_, std::string(kIndent, ' '),
                      style_.Dim("* stated by a strategy, not derived from layouts"), "\n");
    out_ += "\n";
  }

  void Totals() {
    if (!doc_.contains("totals")) return;
    const Json& totals = doc_["totals"];
    const double tokens = totals["tokens"];
    std::string text = absl::StrCat(
        tokens >= 1e12 ? absl::StrCat(Significant(tokens / 1e12, 4), " trillion")
                       : absl::StrCat(Significant(tokens / 1e9, 4), " billion"),
        " tokens: ", WithThousands(totals["steps"].get<long long>()), " steps, ",
        Significant(totals["days"], 4), " days, ",
        WithThousands(std::llround(totals["device_hours"].get<double>())), " device-hours");
    if (totals.contains("cost")) {
      absl::StrAppend(&text, ", costs ", WithThousands(std::llround(totals["cost"].get<double>())),
                      " at ", ShortNumber(c_.hardware->machine().price_per_device_hour),
                      " a device-hour");
    }
    Section("run", text);
    out_ += "\n";
  }

  // Of a plan that does not fit: what there is most of where it is worst.
  void Largest() {
    if (x_.evaluation.peak <= x_.evaluation.capacity) return;
    const AccountMark* most = &kMarks[0];
    for (const AccountMark& mark : kMarks) {
      if (Worst(mark.account) > Worst(most->account)) most = &mark;
    }
    Section("decides",
            absl::StrCat(most->word, ": ", FormatBytes(Worst(most->account)), ", ",
                         Percent(Worst(most->account) / x_.evaluation.peak),
                         " of what pipeline rank ", x_.evaluation.worst_rank, " must hold"));
  }

  void Next(const std::optional<Suggestion>& s) {
    if (!s) {
      Section("next",
              absl::StrCat("no single change of degree, micro-batch or strategy makes this plan ",
                           x_.evaluation.fits ? "at least 1 % better" : "fit"));
      return;
    }
    const Evaluation& now = x_.evaluation;
    const std::string change = absl::StrCat("--set ", s->key, "=", s->value);
    const double slower = s->step_seconds / now.step - 1;
    const std::string time =
        absl::StrCat(FormatSeconds(s->step_seconds), " a step (", slower > 0 ? "+" : "",
                     Significant(100 * slower, 2), " %)");
    const std::string memory =
        s->fits ? absl::StrCat(FormatBytes(s->peak_bytes), ", ",
                               Percent(1 - s->peak_bytes / now.capacity, 2), " free")
                : absl::StrCat(FormatBytes(s->peak_bytes), ", still ",
                               FormatBytes(s->peak_bytes - now.capacity), " over");
    Section("next", absl::StrCat("try ", change, ": ", time, ", ", memory));
  }

  const PlannedScenario& planned_;
  const Composition& c_;
  const Explanation& x_;
  const Json& doc_;
  const TextStyle& style_;
  std::string out_;
};

}  // namespace

std::string PlanText(const PlannedScenario& planned, const Json& document,
                     const std::optional<Suggestion>& suggestion, const TextStyle& style) {
  return Report(planned, document, style).Make(suggestion);
}

}  // namespace shardlab
