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
// No run, time or host is in any table. Rows are appended in order of their combination, a piece of
// them and the new `next` in one transaction: a sweep that is killed goes on where it was.
//
//   absl::StatusOr<SweepStore> store = SweepStore::Open("runs.db", true);
//   absl::StatusOr<StoredSweep> sweep = store->Begin(stored);

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/sweep_run.h"

struct sqlite3;

namespace shardlab {

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
  // `write`: made where it is missing.
  static absl::StatusOr<SweepStore> Open(const std::string& path, bool write);

  // The stored sweep of the same scenario and version, or a new one.
  absl::StatusOr<StoredSweep> Begin(const StoredSweep& wanted);
  // All of a piece or nothing; updates `sweep`. Fails when another process went on with the sweep.
  absl::Status Append(const SweepPiece& piece, bool documents, StoredSweep* sweep);

  absl::StatusOr<std::vector<StoredSweep>> List();
  // In order of combination, as RunSweep gave them but for documents.
  absl::StatusOr<std::vector<SweepRow>> Rows(const StoredSweep& sweep);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit SweepStore(sqlite3* database) : database_(database) {}
  absl::Status Columns(const std::vector<Cell>& cells);

  std::unique_ptr<sqlite3, Close> database_;
  std::vector<std::string> known_;  // columns of rows
};

}  // namespace shardlab
