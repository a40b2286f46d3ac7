#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "app/sweep_command.h"
#include "base/text.h"
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
std::vector<SweepRow> Kept(std::vector<SweepRow> rows, const Condition& keep) {
  std::vector<SweepRow> kept;
  for (SweepRow& row : rows) {
    std::string problem;
    const auto look_up = [&](const std::string& name) { return ScalarOf(row, name); };
    if (keep.Holds(look_up, &problem).value_or(false)) kept.push_back(std::move(row));
  }
  return kept;
}

Json RowToJson(const SweepRow& row) {
  Json json = {{"combination", row.combination}, {"legal", row.legal ? 1 : 0}};
  if (!row.legal) json["reason"] = row.reason;
  for (const auto* cells : {&row.keys, &row.cells}) {
    for (const auto& [name, value] : *cells) json[name] = value;
  }
  return json;
}

std::string JsonLines(const std::vector<SweepRow>& rows) {
  std::string out;
  for (const SweepRow& row : rows) absl::StrAppend(&out, RowToJson(row).dump(), "\n");
  return out;
}

}  // namespace

int ResultsCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("results [list | show] DB [--sweep ID] [--keep CONDITION]",
                   "What a store of `shardlab sweep --store DB` holds: its sweeps, or the rows of "
                   "one as text,\nJSON, JSON lines or CSV.",
                   streams, {"text", "json", "jsonl", "csv"});
  std::int64_t id = 0;
  std::string keep_text;
  line.options().add_options()("sweep", po::value(&id), "of the list; the last if left out")(
      "keep", po::value(&keep_text), "only rows for which this holds: \"memory.fits\"");
  if (!line.Parse(args, 1, 2)) return line.status();
  const std::string verb = line.positional().size() == 2 ? line.positional()[0] : "list";
  const std::vector<std::string> verbs = {"list", "show"};
  if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end()) {
    const std::string near = Nearest(verb, verbs);
    return line.Fail(
        absl::StrCat("results has no \"", verb, "\""),
        near.empty() ? "it has list and show" : absl::StrCat("did you mean \"", near, "\"?"));
  }
  Diagnostics diagnostics;
  std::optional<Condition> keep;
  if (!keep_text.empty()) keep = Condition::Parse(keep_text, {"--keep", 0, 0, ""}, &diagnostics);
  if (diagnostics.HasErrors()) {
    line.Tell(diagnostics, {});
    return kWrongInput;
  }
  absl::StatusOr<SweepStore> store = SweepStore::Open(line.positional().back(), false);
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
  const StoredSweep* shown = nullptr;
  for (const StoredSweep& sweep : *sweeps) {
    if (id == 0 || sweep.id == id) shown = &sweep;
  }
  if (shown == nullptr)
    return line.Fail(
        sweeps->empty() ? "the store is empty" : absl::StrCat("the store has no sweep ", id),
        "shardlab results list DB shows what it has");
  absl::StatusOr<std::vector<SweepRow>> rows = store->Rows(*shown);
  if (!rows.ok()) return line.Fail(std::string(rows.status().message()));
  if (keep) *rows = Kept(std::move(*rows), *keep);
  if (line.json()) {
    Json document = {{"schema", "shardlab.results/1"}, {"sweep", SweepToJson(*shown)}};
    document["rows"] = Json::array();
    for (const SweepRow& row : *rows) document["rows"].push_back(RowToJson(row));
    document["provenance"] = shown->provenance;
    streams.out << document.dump(2) << "\n";
  } else if (line.format() == "jsonl") {
    streams.out << JsonLines(*rows);
  } else if (line.format() == "csv") {
    streams.out << SweepCsv(shown->keys, shown->columns, *rows);
  } else {
    streams.out << SweepText({shown->name, shown->combinations, shown->counts, shown->keys}, *rows,
                             line.style());
  }
  return kDone;
}

}  // namespace shardlab
