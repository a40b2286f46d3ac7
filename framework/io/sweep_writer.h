#pragma once
// Appends the pieces of one sweep to a store: takes them as they come, and stores those taken, all
// in one transaction.
//
//   SweepWriter writer(database, stored_sweep);
//   writer.Take(std::move(piece), documents);
//   if (writer.IsDue()) status = writer.Store(&known_columns);

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/sqlite_statement.h"
#include "io/sweep_store.h"

namespace shardlab {

class SweepWriter final {
 public:
  SweepWriter(sqlite3* database, const StoredSweep& stored);

  const StoredSweep& taken() const { return taken_; }  // what will be stored
  void Take(SweepPiece piece, bool documents);
  // A matter of numbers alone, see SweepStore.
  bool IsDue() const;
  // `known`: the columns of rows; missing ones are made.
  absl::Status Store(std::vector<std::string>* known);

 private:
  // Rows with the same columns.
  struct Kind {
    Cells::Names keys, cells;
    std::unique_ptr<Statement> insert;
    bool has_columns = false;
    std::vector<bool> boolean;  // [keys, then cells], in the first such row
  };

  bool IsNew(const nlohmann::ordered_json& constant);  // not seen before
  Kind& KindOf(const SweepRow& row);
  void Note(const SweepRow& row);
  absl::Status Columns(std::vector<std::string>* known);
  absl::Status Rows();
  absl::Status Insert(const SweepRow& row);
  absl::Status InsertDocument(const SweepRow& row);
  absl::Status Constants();
  absl::Status Update();

  sqlite3* database_;
  StoredSweep stored_, taken_;
  std::map<std::string, std::vector<nlohmann::ordered_json>> constants_;  // by name
  std::vector<std::vector<SweepRow>> pieces_;
  bool documents_ = false;
  std::vector<Kind> kinds_;
};

}  // namespace shardlab
