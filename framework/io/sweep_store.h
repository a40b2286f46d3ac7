#pragma once
// Sweeps in an SQLite file, to be read with any tool:
//
//   sweeps      id, kind, name, scenario_hash, scenario (TOML), program_version, combinations, next
//               (all before it are done), considered, illegal, not_fitting, pruned, evaluated,
//               filtered, keys and columns (JSON lists of column names of rows)
//   rows        sweep, combination, legal (0 or 1), reason, and a column for each varied key and
//               each scalar of plan, memory, time and throughput, named by its path
//   documents   sweep, combination, document: whole rows as JSON, with --documents
//   provenance  sweep, name, value (JSON), source: the constants that were used
//
// No run, time or host is in any table. Rows are appended in order of their combination, some
// pieces of them and the new `next` in one transaction: a sweep that is killed goes on where it
// was. How many pieces is a matter of their numbers alone, so that the file's bytes are: one at
// first, then up to a quarter of what is stored, at most kMostBuffered combinations.
//
//   absl::StatusOr<SweepStore> store = SweepStore::Open("runs.db", true);
//   absl::StatusOr<StoredSweep> sweep = store->Begin(stored);

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/sweep_run.h"

struct sqlite3;

namespace shardlab {

class SweepWriter;

struct StoredSweep {
  std::int64_t id = 0;
  std::string kind, name, scenario, scenario_hash, program_version;
  std::int64_t combinations = 0, next = 0;
  SweepCounts counts;
  std::vector<std::string> keys, columns;
  std::vector<nlohmann::ordered_json> provenance;
  bool done() const { return next == combinations; }
};

std::string ScenarioHash(const std::string& canonical);  // FNV-1a, 16 hexadecimal digits

class SweepStore final {
 public:
  static constexpr std::int64_t kMostBuffered = 8192;  // combinations

  // `write`: made where it is missing. "" is a store of this process alone, gone with it.
  static absl::StatusOr<SweepStore> Open(const std::string& path, bool write);
  SweepStore(SweepStore&& other) noexcept;
  SweepStore& operator=(SweepStore&& other) noexcept;
  ~SweepStore();

  // The stored sweep of the same scenario and version, or a new one.
  absl::StatusOr<StoredSweep> Begin(const StoredSweep& wanted);
  // Takes the piece that begins where `sweep` ends, and updates `sweep`; now and then, and with the
  // last piece, stores what was taken: all of that or nothing. Fails when another process went on
  // with the sweep. Pieces of one sweep at a time.
  absl::Status Append(SweepPiece piece, bool documents, StoredSweep* sweep);

  absl::StatusOr<std::vector<StoredSweep>> List();
  // In order of combination, as RunSweep gave them but for documents.
  absl::StatusOr<std::vector<SweepRow>> Rows(const StoredSweep& sweep);
  // The same one at a time, until `use` returns false.
  absl::Status EachRow(const StoredSweep& sweep, const std::function<bool(SweepRow)>& use);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit SweepStore(sqlite3* database);

  std::unique_ptr<sqlite3, Close> database_;
  std::vector<std::string> known_;  // columns of rows
  std::unique_ptr<SweepWriter>
      writer_;  // of the sweep that is appended to; ends before its database
};

}  // namespace shardlab
