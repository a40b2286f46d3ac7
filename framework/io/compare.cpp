#include "io/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

// Nothing but rounding.
bool Same(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

double Value(const Json& value) { return value.is_number() ? value.get<double>() : 0; }

Json Side(const Json& document) {
  const Json& memory = document["memory"];
  return {{"scenario", document["scenario"]},
          {"accounting", document["accounting"]},
          {"verdict", memory["verdict"]},
          {"peak_bytes", memory["peak_bytes"]},
          {"worst_rank", memory["worst_rank"]},
          {"time_rank", document["time"]["rank"]},
          {"step_seconds", document["time"]["step_seconds"]}};
}

// Scalars and lists of `resolved` by their dotted keys.
void Flatten(const Json& json, const std::string& path, std::map<std::string, Json>* into) {
  if (!json.is_object()) {
    if (!json.is_null()) (*into)[path] = json;
    return;
  }
  for (const auto& [key, value] : json.items())
    Flatten(value, path.empty() ? key : absl::StrCat(path, ".", key), into);
}

Json Settings(const Json& a, const Json& b) {
  std::map<std::string, Json> of_a, of_b;
  Flatten(a["resolved"], "", &of_a);
  Flatten(b["resolved"], "", &of_b);
  Json rows = Json::array();
  const auto add = [&](const std::string& key, const Json& left, const Json& right) {
    if (key != "name" && left != right) rows.push_back({{"key", key}, {"a", left}, {"b", right}});
  };
  for (const auto& [key, value] : of_a) {
    const auto other = of_b.find(key);
    add(key, value, other == of_b.end() ? Json() : other->second);
  }
  for (const auto& [key, value] : of_b) {
    if (of_a.count(key) == 0) add(key, Json(), value);
  }
  std::sort(rows.begin(), rows.end(), [](const Json& x, const Json& y) {
    return x["key"].get<std::string>() < y["key"].get<std::string>();
  });
  return rows;
}

Json Memory(const Json& a, const Json& b) {
  const auto worst = [](const Json& d) -> const Json& {
    return d["memory"]["ranks"][d["memory"]["worst_rank"].get<std::size_t>()];
  };
  const Json &left = worst(a), &right = worst(b);
  Json rows = Json::array();
  for (const auto& [key, value] : left.items()) {
    const std::size_t tail = key.rfind("_bytes");
    if (tail == std::string::npos || tail + 6 != key.size()) continue;
    const std::int64_t x = value.get<std::int64_t>(), y = right[key].get<std::int64_t>();
    rows.push_back({{"account", key.substr(0, tail)},
                    {"a_bytes", x},
                    {"b_bytes", y},
                    {"difference_bytes", y - x}});
  }
  return rows;
}

Json SecondsRow(const std::string& part, double a, double b) {
  return {{"part", part}, {"a_seconds", a}, {"b_seconds", b}, {"difference_seconds", b - a}};
}

Json Time(const Json& a, const Json& b) {
  const Json &left = a["time"], &right = b["time"];
  Json rows = Json::array();
  for (const char* part : {"forward", "backward", "recompute", "optimizer"}) {
    const std::string key = absl::StrCat(part, "_seconds");
    rows.push_back(SecondsRow(part, left[key], right[key]));
  }
  for (const auto& [key, value] : left["exposed"].items()) {
    rows.push_back(SecondsRow(absl::StrCat("exposed ", key.substr(0, key.rfind("_seconds"))), value,
                              right["exposed"].value(key, 0.0)));
  }
  rows.push_back(SecondsRow("bubble", left["bubble_seconds"], right["bubble_seconds"]));
  rows.push_back(SecondsRow("step", left["step_seconds"], right["step_seconds"]));
  return rows;
}

Json Throughput(const Json& a, const Json& b) {
  Json rows = Json::array();
  for (const auto& [key, value] : a["throughput"].items()) {
    if (!value.is_number()) continue;
    const double x = value.get<double>(), y = b["throughput"][key].get<double>();
    rows.push_back({{"name", key}, {"a", x}, {"b", y}, {"difference", y - x}});
  }
  return rows;
}

Json Traffic(const Json& a, const Json& b) {
  std::vector<std::string> axes;
  struct Sum {
    std::int64_t bytes = 0;
    double seconds = 0, exposed = 0;
  };
  std::map<std::string, std::array<Sum, 2>> sums;
  for (std::size_t side = 0; side < 2; ++side) {
    for (const Json& row : (side == 0 ? a : b)["communication"]) {
      const std::string axis = row["axis"];
      if (sums.count(axis) == 0) axes.push_back(axis);
      Sum& sum = sums[axis][side];
      sum.bytes += row["bytes"].get<std::int64_t>();
      sum.seconds += row["seconds"].get<double>();
      sum.exposed += row["exposed_seconds"].get<double>();
    }
  }
  Json rows = Json::array();
  for (const std::string& axis : axes) {
    const auto& [x, y] = sums[axis];
    rows.push_back({{"axis", axis},
                    {"a_bytes", x.bytes},
                    {"b_bytes", y.bytes},
                    {"difference_bytes", y.bytes - x.bytes},
                    {"a_seconds", x.seconds},
                    {"b_seconds", y.seconds},
                    {"a_exposed_seconds", x.exposed},
                    {"b_exposed_seconds", y.exposed}});
  }
  return rows;
}

// One row of each side under the same name; several rows of one name are added up.
struct Pair {
  std::string group, row;
  std::array<double, 2> value{};
  std::array<bool, 2> present{};
  std::array<std::string, 2> author, formula;
};

class Pairs {
 public:
  void Add(std::size_t side, const std::string& group, const std::string& row,
           const std::string& author, const std::string& formula, double value) {
    const auto key = std::make_pair(group, row);
    const auto known = index_.emplace(key, pairs_.size());
    if (known.second) pairs_.push_back({group, row, {}, {}, {}, {}});
    Pair& pair = pairs_[known.first->second];
    pair.value[side] += value;
    absl::StrAppend(&pair.formula[side], pair.present[side] ? " + " : "", formula);
    pair.author[side] = author;
    pair.present[side] = true;
  }

  // Those that differ, the largest difference first. `key`: "account" or "part"; `unit`: "bytes".
  Json Differing(const char* key, const char* unit) const {
    std::vector<const Pair*> differ;
    for (const Pair& pair : pairs_) {
      if (!Same(pair.value[0], pair.value[1])) differ.push_back(&pair);
    }
    const auto size = [](const Pair* p) { return std::abs(p->value[1] - p->value[0]); };
    std::stable_sort(differ.begin(), differ.end(),
                     [&](const Pair* x, const Pair* y) { return size(x) > size(y); });
    const bool bytes = std::string(unit) == "bytes";
    const auto number = [&](double v) {
      return bytes ? Json(static_cast<std::int64_t>(std::llround(v))) : Json(v);
    };
    Json rows = Json::array();
    for (const Pair* pair : differ) {
      Json row = {{key, pair->group}, {"row", pair->row}};
      for (std::size_t side = 0; side < 2; ++side) {
        const std::string of = side == 0 ? "a_" : "b_";
        const bool there = pair->present[side];
        row[absl::StrCat(of, unit)] = there ? number(pair->value[side]) : Json();
        row[absl::StrCat(of, "author")] = there ? Json(pair->author[side]) : Json();
        row[absl::StrCat(of, "formula")] = there ? Json(pair->formula[side]) : Json();
      }
      row[absl::StrCat("difference_", unit)] = number(pair->value[1] - pair->value[0]);
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  std::vector<Pair> pairs_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
};

// --- text
// ------------------------------------------------------------------------------------------------

std::string Signed(double value, const std::function<std::string(double)>& format) {
  if (value == 0) return "=";
  return absl::StrCat(value > 0 ? "+" : "-", format(std::abs(value)));
}

class Text {
 public:
  Text(const Json& comparison, const TextStyle& style)
      : c_(comparison),
        style_(style),
        width_(static_cast<std::size_t>(std::max(60, style.width))) {}

  std::string Make() {
    Head("A", c_["a"]);
    Head("B", c_["b"]);
    out_ += "\n";
    Settings();
    Numbers("memory of the worst rank", c_["memory"], "account", "_bytes", FormatBytes, true);
    Numbers("time (rank that ends last)", c_["time"], "part", "_seconds", FormatSeconds, true);
    Rates();
    Numbers("sent by one device, per step", c_["traffic"], "axis", "_bytes", FormatBytes, false);
    Rows("rows of memory that differ", c_["memory_rows"], "account", "_bytes", FormatBytes);
    Rows("rows of time that differ", c_["time_rows"], "part", "_seconds", FormatSeconds);
    out_.pop_back();  // of two line ends
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kMostRows = 12;
  bool Wide() const { return width_ >= 94; }

  void Head(const char* letter, const Json& side) {
    const std::string verdict = side["verdict"];
    const std::string word = verdict == "does_not_fit" ? style_.Red("DOES NOT FIT")
                             : verdict == "tight"      ? style_.Yellow("TIGHT")
                                                       : style_.Green("FITS");
    absl::StrAppend(&out_, style_.Bold(letter), "  ",
                    Wrapped(absl::StrCat(side["scenario"].get<std::string>(), "  (",
                                         side["accounting"].get<std::string>(), " accounting)"),
                            3, width_));
    absl::StrAppend(&out_, "   ", word, "  ", FormatBytes(side["peak_bytes"]), ", ",
                    FormatSeconds(side["step_seconds"]), " a step\n");
  }

  std::string Line(const std::string& name, const std::string& a, const std::string& b,
                   const std::string& difference, const std::string& share) const {
    std::string line = Wide() ? absl::StrFormat("  %-38s %14s %14s %14s", name, a, b, difference)
                              : absl::StrFormat("  %-27s %12s %12s %13s", name, a, b, difference);
    if (Wide()) absl::StrAppend(&line, absl::StrFormat(" %9s", share));
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line + "\n";
  }

  void Title(const std::string& title) {
    const std::string line =
        Wide() ? absl::StrFormat("%-40s %14s %14s %14s", title, "A", "B", "B - A")
               : absl::StrFormat("%-29s %12s %12s %13s", title, "A", "B", "B - A");
    absl::StrAppend(&out_, style_.Bold(line), "\n");
  }

  static std::string Share(double a, double b) {
    if (a == b) return "";
    if (a == 0) return "new";
    if (b > 10 * a) return absl::StrCat("x ", Significant(b / a, 3));
    if (std::abs(b / a - 1) < 5e-5) return "0.00 %";
    return absl::StrCat(b > a ? "+" : "", Significant(100 * (b / a - 1), 3), " %");
  }

  void Settings() {
    if (c_["settings"].empty()) {
      out_ += "both are set alike\n\n";
      return;
    }
    absl::StrAppend(&out_, style_.Bold("set differently"), "\n");
    for (const Json& row : c_["settings"]) {
      const auto shown = [](const Json& value) {
        return value.is_null()     ? std::string("-")
               : value.is_string() ? value.get<std::string>()
                                   : value.dump();
      };
      absl::StrAppend(&out_, "  ",
                      Wrapped(absl::StrCat(row["key"].get<std::string>(), "  A: ", shown(row["a"]),
                                           "  B: ", shown(row["b"])),
                              4, width_));
    }
    out_ += "\n";
  }

  // `last_is_sum`: the last row is shown whatever it is; of the others those that are nothing on
  // both sides are left out.
  void Numbers(const std::string& title, const Json& rows, const char* key, const std::string& unit,
               const std::function<std::string(double)>& format, bool last_is_sum) {
    if (rows.empty()) return;
    Title(title);
    for (const Json& row : rows) {
      const double a = Value(row["a" + unit]), b = Value(row["b" + unit]);
      if (a == 0 && b == 0 && !(last_is_sum && &row == &rows.back())) continue;
      std::string name = row[key];
      std::replace(name.begin(), name.end(), '_', ' ');
      const std::string line =
          Line(name, format(a), format(b), Same(a, b) ? "=" : Signed(b - a, format), Share(a, b));
      out_ += Same(a, b) ? style_.Dim(line) : line;
    }
    out_ += "\n";
  }

  void Rates() {
    Title("throughput");
    for (const Json& row : c_["throughput"]) {
      const std::string key = row["name"];
      const double a = row["a"], b = row["b"];
      std::function<std::string(double)> format = [](double v) {
        return WithThousands(std::llround(v));
      };
      std::string name = key;
      if (key == "mfu" || key == "hfu") {
        format = [](double v) { return absl::StrCat(Significant(100 * v, 3), " %"); };
      } else if (key.rfind("tokens", 0) != 0) {
        format = FormatFlopRate;
        if (key == "model_flops_per_token") format = FormatFlops;
      }
      if (key == "tokens_per_second") name = "tokens/s";
      if (key == "tokens_per_second_per_device") name = "tokens/s per device";
      if (key == "model_flops_per_token") name = "model FLOPs per token";
      if (key == "model_flops_per_second_per_device") name = "model FLOP/s per device";
      if (key == "mfu" || key == "hfu") name = key == "mfu" ? "MFU" : "HFU";
      const std::string line =
          Line(name, format(a), format(b), Same(a, b) ? "=" : Signed(b - a, format), Share(a, b));
      out_ += Same(a, b) ? style_.Dim(line) : line;
    }
    out_ += "\n";
  }

  void Rows(const std::string& title, const Json& rows, const char* key, const std::string& unit,
            const std::function<std::string(double)>& format) {
    if (rows.empty()) return;
    Title(title);
    std::size_t shown = 0;
    for (const Json& row : rows) {
      if (shown++ == kMostRows) {
        absl::StrAppend(
            &out_, "  ",
            style_.Dim(absl::StrCat("(", rows.size() - kMostRows, " more; --format json has all)")),
            "\n");
        break;
      }
      const Json &a = row["a" + unit], &b = row["b" + unit];
      const std::string name =
          absl::StrCat(row[key].get<std::string>(), ": ", row["row"].get<std::string>());
      const std::string numbers =
          Line(name, a.is_null() ? "-" : format(Value(a)), b.is_null() ? "-" : format(Value(b)),
               Signed(Value(row["difference" + unit]), format), Share(Value(a), Value(b)));
      // A long name has a line of its own.
      if (name.size() > (Wide() ? 38u : 27u)) {
        absl::StrAppend(&out_, "  ", Wrapped(name, 4, width_));
        const std::string rest =
            Line("", a.is_null() ? "-" : format(Value(a)), b.is_null() ? "-" : format(Value(b)),
                 Signed(Value(row["difference" + unit]), format), Share(Value(a), Value(b)));
        out_ += rest;
      } else {
        out_ += numbers;
      }
      if (row["a_formula"] == row["b_formula"]) continue;
      for (const char* side : {"a", "b"}) {
        const Json& formula = row[absl::StrCat(side, "_formula")];
        if (formula.is_null()) continue;
        const std::string text =
            absl::StrCat(side[0] == 'a' ? "A" : "B", " = ", formula.get<std::string>(), ", by ",
                         row[absl::StrCat(side, "_author")].get<std::string>());
        absl::StrAppend(&out_, "    ", style_.Dim(Wrapped(text, 8, width_)));
      }
    }
    out_ += "\n";
  }

  const Json& c_;
  const TextStyle& style_;
  std::size_t width_;
  std::string out_;
};

}  // namespace

Json CompareDocument(const PlannedScenario& a, const Json& document_a, const PlannedScenario& b,
                     const Json& document_b) {
  Pairs memory, time;
  for (std::size_t side = 0; side < 2; ++side) {
    const Explanation& x = (side == 0 ? a : b).explanation;
    const auto worst = static_cast<std::size_t>(x.evaluation.worst_rank);
    for (const MemoryEntry& e : x.ranks[worst].entries)
      memory.Add(side, Name(e.account), e.row, e.author, e.formula, e.bytes);
    for (const TimeEntry& e : x.times)
      time.Add(side, e.part, e.row, e.author, e.formula, e.seconds);
  }
  return {{"schema", "shardlab.compare/1"},
          {"a", Side(document_a)},
          {"b", Side(document_b)},
          {"settings", Settings(document_a, document_b)},
          {"memory", Memory(document_a, document_b)},
          {"time", Time(document_a, document_b)},
          {"throughput", Throughput(document_a, document_b)},
          {"traffic", Traffic(document_a, document_b)},
          {"memory_rows", memory.Differing("account", "bytes")},
          {"time_rows", time.Differing("part", "seconds")}};
}

std::string CompareText(const Json& comparison, const TextStyle& style) {
  return Text(comparison, style).Make();
}

}  // namespace shardlab
