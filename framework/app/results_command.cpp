#include <fstream>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "app/sweep_command.h"
#include "base/text.h"
#include "io/results_compare.h"
#include "io/results_plot.h"
#include "io/sweep_store.h"
#include "io/sweep_text.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

Json SweepToJson(const StoredSweep& sweep) {
  return {{"id", sweep.id},
          {"kind", sweep.kind},
          {"scenario", sweep.name},
          {"scenario_hash", sweep.scenario_hash},
          {"program_version", sweep.program_version},
          {"combinations", sweep.combinations},
          {"done", sweep.next},
          {"keys", sweep.keys},
          {"counts", CountsToJson(sweep.counts)}};
}

std::string ListText(const std::vector<StoredSweep>& sweeps) {
  std::string out;
  for (const StoredSweep& sweep : sweeps) {
    absl::StrAppend(&out, sweep.id, "  ", sweep.name, "  (", sweep.kind, " of ",
                    Enumerate(sweep.keys), ")\n   ", CountsText(sweep.counts), "\n");
    if (!sweep.done())
      absl::StrAppend(&out, "   interrupted after ", WithThousands(sweep.next), " of ",
                      WithThousands(sweep.combinations), " combinations\n");
  }
  return out.empty() ? "the store is empty\n" : out;
}

std::optional<Condition::Scalar> ScalarOf(const SweepRow& row, const std::string& name) {
  if (name == "legal") return row.legal;
  const Json value = CellOf(row, name);
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return std::nullopt;
}

// Rows without one of the names (illegal ones have no results) are not kept.
bool IsKept(const SweepRow& row, const std::optional<Condition>& keep) {
  if (!keep) return true;
  std::string problem;
  const auto look_up = [&](const std::string& name) { return ScalarOf(row, name); };
  return keep->Holds(look_up, &problem).value_or(false);
}

Json RowToJson(const SweepRow& row) {
  Json json = {{"combination", row.combination}, {"legal", row.legal ? 1 : 0}};
  if (!row.legal) json["reason"] = row.reason;
  for (const auto* cells : {&row.keys, &row.cells}) {
    for (const auto& [name, value] : *cells) json[name] = value;
  }
  return json;
}

// Rows as they are read, however many.
absl::Status Stream(SweepStore* store, const StoredSweep& sweep,
                    const std::optional<Condition>& keep, const CommandLine& line,
                    Streams streams) {
  const auto each = [&](const std::function<void(const SweepRow&)>& use) {
    return store->EachRow(sweep, [&](const SweepRow& row) {
      if (IsKept(row, keep)) use(row);
      return streams.out.good();
    });
  };
  if (line.format() == "jsonl")
    return each([&](const SweepRow& row) { streams.out << RowToJson(row).dump() << "\n"; });
  if (line.format() == "csv") {
    SweepCsv csv(sweep.keys, sweep.columns);
    streams.out << csv.Head();
    return each([&](const SweepRow& row) { streams.out << csv.Line(row); });
  }
  SweepText text({sweep.name, sweep.combinations, sweep.counts, sweep.keys}, line.style());
  absl::Status read = each([&](const SweepRow& row) { text.Add(row); });
  streams.out << text.Make();
  return read;
}

// What `compare` names: a sweep of a store, or one of its rows.
struct Compared {
  StoredSweep sweep;
  std::vector<SweepRow> rows;
  std::optional<std::int64_t> combination;
  std::string name;
};

// "2" a sweep, "2:14" its combination 14.
absl::StatusOr<Compared> ReadCompared(SweepStore* store, const std::vector<StoredSweep>& sweeps,
                                      const std::string& text) {
  const std::size_t colon = text.find(':');
  std::int64_t id = 0, combination = 0;
  if (!absl::SimpleAtoi(text.substr(0, colon), &id) ||
      (colon != std::string::npos && !absl::SimpleAtoi(text.substr(colon + 1), &combination)))
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" names no sweep: write 2 for sweep 2, or 2:14 for its combination 14"));
  for (const StoredSweep& sweep : sweeps) {
    if (sweep.id != id) continue;
    absl::StatusOr<std::vector<SweepRow>> rows = store->Rows(sweep);
    if (!rows.ok()) return rows.status();
    Compared compared{sweep, std::move(*rows), std::nullopt, absl::StrCat("sweep ", id)};
    if (colon == std::string::npos) return compared;
    compared.combination = combination;
    absl::StrAppend(&compared.name, ", combination ", combination);
    for (SweepRow& row : compared.rows) {
      if (row.combination != combination) continue;
      SweepRow found = std::move(row);
      compared.rows = {std::move(found)};
      return compared;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("sweep ", id, " has no row of combination ", combination));
  }
  return absl::InvalidArgumentError(absl::StrCat("the store has no sweep ", id));
}

int ShowDifference(const Compared& a, const Compared& b, const CommandLine& line, Streams streams) {
  const bool rows = a.combination.has_value();
  SweepDifference difference;
  if (rows) {
    difference.columns = CompareRows(a.rows.front(), b.rows.front());
  } else {
    difference = CompareSweeps(a.sweep, a.rows, b.sweep, b.rows);
  }
  if (line.json()) {
    Json json = {{"schema", "shardlab.results/1"}, {"a", a.name}, {"b", b.name}};
    if (!rows)
      json["rows"] = {{"only_a", difference.only_a},
                      {"only_b", difference.only_b},
                      {"same", difference.same},
                      {"different", difference.different}};
    json["columns"] = ColumnsToJson(difference.columns, !rows);
    streams.out << json.dump(2) << "\n";
    return kDone;
  }
  streams.out << "A  " << a.name << ": " << a.sweep.name << "\nB  " << b.name << ": "
              << b.sweep.name << "\n";
  if (!rows)
    streams.out << WithThousands(difference.same) << " rows are the same, "
                << WithThousands(difference.different) << " differ; only in A "
                << WithThousands(difference.only_a) << ", only in B "
                << WithThousands(difference.only_b) << "\n";
  if (difference.columns.empty()) {
    if (rows) streams.out << "no column differs\n";
    return kDone;
  }
  if (!rows) streams.out << "\nthe greatest change of each column that differs\n";
  streams.out << ColumnsText(difference.columns, !rows);
  return kDone;
}

// A and B of one store, or the last sweeps of two, or the last two of one.
int CompareStored(SweepStore* store, const std::vector<StoredSweep>& sweeps, CommandLine* line,
                  Streams streams) {
  const std::vector<std::string>& words = line->positional();
  std::vector<Compared> both;
  const auto take = [&](SweepStore* from, const std::vector<StoredSweep>& list,
                        const std::string& text) {
    absl::StatusOr<Compared> read = ReadCompared(from, list, text);
    if (!read.ok()) return read.status();
    both.push_back(std::move(*read));
    return absl::OkStatus();
  };
  absl::Status status;
  if (words.size() == 3) {
    absl::StatusOr<SweepStore> second = SweepStore::Open(words[2], false);
    if (!second.ok()) return line->Fail(std::string(second.status().message()));
    const absl::StatusOr<std::vector<StoredSweep>> theirs = second->List();
    if (!theirs.ok()) return line->Fail(std::string(theirs.status().message()));
    if (sweeps.empty() || theirs->empty()) return line->Fail("one of the stores is empty");
    status = take(store, sweeps, absl::StrCat(sweeps.back().id));
    if (status.ok()) status = take(&*second, *theirs, absl::StrCat(theirs->back().id));
    if (status.ok()) {
      both[0].name = absl::StrCat(words[1], ", ", both[0].name);
      both[1].name = absl::StrCat(words[2], ", ", both[1].name);
    }
  } else if (words.size() == 2) {
    if (sweeps.size() < 2)
      return line->Fail("the store has no two sweeps to compare",
                        "name two rows: results compare DB 1:0 1:4");
    status = take(store, sweeps, absl::StrCat(sweeps[sweeps.size() - 2].id));
    if (status.ok()) status = take(store, sweeps, absl::StrCat(sweeps.back().id));
  } else {
    status = take(store, sweeps, words[2]);
    if (status.ok()) status = take(store, sweeps, words[3]);
  }
  if (!status.ok())
    return line->Fail(std::string(status.message()), "shardlab results list DB shows what it has");
  if (both[0].combination.has_value() != both[1].combination.has_value())
    return line->Fail("a sweep cannot be compared with a row",
                      "name two of a kind: 1 2, or 1:0 2:0");
  return ShowDifference(both[0], both[1], *line, streams);
}

int Plot(const StoredSweep& sweep, const std::vector<SweepRow>& rows, const PlotAsked& asked,
         const std::string& file, CommandLine* line, Streams streams) {
  Diagnostics diagnostics;
  const std::optional<SvgPlot> plot = PlotRows(sweep, rows, asked, &diagnostics);
  if (!plot) {
    line->Tell(diagnostics, {});
    return kWrongInput;
  }
  const std::string text = SvgText(*plot);
  if (file.empty()) {
    streams.out << text;
    return kDone;
  }
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (out.fail()) {
    line->Fail(absl::StrCat(file, " cannot be written"));
    return kOther;
  }
  return kDone;
}

}  // namespace

int ResultsCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("results [list | show | compare | plot] DB [--sweep ID] [--where CONDITION]",
                   "What a store of `shardlab sweep --store DB` holds: its sweeps; the rows of one "
                   "as text,\nJSON, JSON lines or CSV; a chart of them as SVG; or what differs, of "
                   "two sweeps or rows:\n  results compare DB [A B | DB2]    A, B: 2 is sweep 2, "
                   "2:14 its combination 14\n  results plot DB --x KEY --y COLUMN -o FILE.svg",
                   streams, {"text", "json", "jsonl", "csv"});
  std::int64_t id = 0;
  std::string keep_text, file;
  PlotAsked asked;
  line.options().add_options()("sweep", po::value(&id), "of the list; the last if left out")(
      "where", po::value(&keep_text), "only rows for which this holds: \"memory.fits\"")(
      "keep", po::value<std::string>(), "the same as --where")(
      "x", po::value(&asked.x), "plot: a column; the first varied key if left out")(
      "y", po::value(&asked.y), "plot: a column; time.step_seconds if left out")(
      "series", po::value(&asked.series)->composing(),
      "plot: a line for each value of this; repeatable; the other varied keys if left out")(
      "best", po::value(&asked.best), "plot: of several rows at one x the one with y low or high")(
      "points", "plot: single points, not lines")(
      "pareto", po::value(&asked.pareto),
      "plot: points and their Pareto front; what is better in x and y: low,low")(
      "log-y", "plot: y by powers of ten")("title", po::value(&asked.title),
                                           "plot: the sweep's name if left out")(
      "output,o", po::value(&file), "plot: an SVG file; standard output if left out");
  if (!line.Parse(args, 1, 4)) return line.status();
  asked.points = line.values().count("points") != 0;
  asked.log_y = line.values().count("log-y") != 0;
  if (line.values().count("keep") != 0) {
    if (!keep_text.empty()) return line.Fail("--keep and --where are the same; give one");
    keep_text = line.values()["keep"].as<std::string>();
  }
  const std::vector<std::string>& words = line.positional();
  const std::string verb = words.size() > 1 ? words[0] : "list";
  const std::vector<std::string> verbs = {"list", "show", "compare", "plot"};
  if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end()) {
    const std::string near = Nearest(verb, verbs);
    return line.Fail(absl::StrCat("results has no \"", verb, "\""),
                     near.empty() ? absl::StrCat("it has ", Enumerate(verbs))
                                  : absl::StrCat("did you mean \"", near, "\"?"));
  }
  if (words.size() > 2 && verb != "compare")
    return line.Fail(absl::StrCat("one argument too many: \"", words[2], "\""));
  const std::string& database = words.size() > 1 ? words[1] : words[0];
  Diagnostics diagnostics;
  std::optional<Condition> keep;
  if (!keep_text.empty())
    keep = Condition::Parse(keep_text,
                            {line.values().count("keep") != 0 ? "--keep" : "--where", 0, 0, ""},
                            &diagnostics);
  if (diagnostics.HasErrors()) {
    line.Tell(diagnostics, {});
    return kWrongInput;
  }
  absl::StatusOr<SweepStore> store = SweepStore::Open(database, false);
  if (!store.ok()) return line.Fail(std::string(store.status().message()));
  const absl::StatusOr<std::vector<StoredSweep>> sweeps = store->List();
  if (!sweeps.ok()) return line.Fail(std::string(sweeps.status().message()));
  if (verb == "list") {
    if (line.format() == "csv" || line.format() == "jsonl")
      return line.Fail("the list is text or json", "results show DB writes rows as csv and jsonl");
    if (line.json()) {
      Json list = Json::array();
      for (const StoredSweep& sweep : *sweeps) list.push_back(SweepToJson(sweep));
      streams.out << Json({{"schema", "shardlab.results/1"}, {"sweeps", list}}).dump(2) << "\n";
    } else {
      streams.out << ListText(*sweeps);
    }
    return kDone;
  }
  if (verb == "compare") return CompareStored(&*store, *sweeps, &line, streams);
  const StoredSweep* shown = nullptr;
  for (const StoredSweep& sweep : *sweeps) {
    if (id == 0 || sweep.id == id) shown = &sweep;
  }
  if (shown == nullptr)
    return line.Fail(
        sweeps->empty() ? "the store is empty" : absl::StrCat("the store has no sweep ", id),
        "shardlab results list DB shows what it has");
  if (verb == "show" && !line.json()) {
    const absl::Status read = Stream(&*store, *shown, keep, line, streams);
    return read.ok() ? kDone : line.Fail(std::string(read.message()));
  }
  std::vector<SweepRow> rows;
  const absl::Status read = store->EachRow(*shown, [&](SweepRow row) {
    if (IsKept(row, keep)) rows.push_back(std::move(row));
    return true;
  });
  if (!read.ok()) return line.Fail(std::string(read.message()));
  if (verb == "plot") return Plot(*shown, rows, asked, file, &line, streams);
  Json document = {{"schema", "shardlab.results/1"}, {"sweep", SweepToJson(*shown)}};
  document["rows"] = Json::array();
  for (const SweepRow& row : rows) document["rows"].push_back(RowToJson(row));
  document["provenance"] = shown->provenance;
  streams.out << document.dump(2) << "\n";
  return kDone;
}

}  // namespace shardlab
