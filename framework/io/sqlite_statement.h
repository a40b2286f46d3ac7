#pragma once
// SQLite in a few words: statements with their values, transactions, what went wrong as a status.
//
//   Statement all(database, "SELECT name FROM sweeps WHERE id = ?");
//   all.Bind(id);
//   while (all.Step()) use(all.Text(0));

#include <sqlite3.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace shardlab {

// A name in quotes, for SQL.
inline std::string Quoted(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

inline absl::Status ErrorOf(sqlite3* database) {
  return absl::InternalError(sqlite3_errmsg(database));
}

inline absl::Status Execute(sqlite3* database, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return ErrorOf(database);
  return absl::OkStatus();
}

// One statement with its values; what SQLite says is asked for at the end of each step.
class Statement final {
 public:
  Statement(sqlite3* database, const std::string& sql) : database_(database) {
    status_ = sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Values in their order. Text outlives the step: nothing is copied.
  Statement& Bind(std::int64_t value) {
    if (status_ == SQLITE_OK) status_ = sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Statement& Bind(std::string&& value) = delete;
  Statement& Bind(const std::string& value) {
    if (status_ == SQLITE_OK)
      status_ = sqlite3_bind_text(statement_, ++bound_, value.data(),
                                  static_cast<int>(value.size()), SQLITE_STATIC);
    return *this;
  }
  Statement& Bind(const nlohmann::ordered_json& value) {
    if (value.is_string()) return Bind(value.get_ref<const std::string&>());
    if (value.is_boolean()) return Bind(std::int64_t{value.get<bool>() ? 1 : 0});
    if (value.is_number_float()) {
      if (status_ == SQLITE_OK)
        status_ = sqlite3_bind_double(statement_, ++bound_, value.get<double>());
      return *this;
    }
    if (value.is_number()) return Bind(value.get<std::int64_t>());
    if (status_ == SQLITE_OK) status_ = sqlite3_bind_null(statement_, ++bound_);
    return *this;
  }
  // True while there is a row.
  bool Step() {
    if (status_ != SQLITE_OK && status_ != SQLITE_ROW) return false;
    status_ = sqlite3_step(statement_);
    return status_ == SQLITE_ROW;
  }
  absl::Status Done() {
    while (status_ != SQLITE_DONE && Step()) {
    }
    return status_ == SQLITE_DONE ? absl::OkStatus() : ErrorOf(database_);
  }
  // For the next values; as many as before.
  void Reset() {
    sqlite3_reset(statement_);
    bound_ = 0;
    status_ = SQLITE_OK;
  }

  std::int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text != nullptr
               ? std::string(text,
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
               : "";
  }
  nlohmann::ordered_json Value(int column) const {
    switch (sqlite3_column_type(statement_, column)) {
      case SQLITE_INTEGER: {
        const char* type = sqlite3_column_decltype(statement_, column);
        if (type != nullptr && std::string_view(type) == "BOOLEAN") return Integer(column) != 0;
        return Integer(column);
      }
      case SQLITE_FLOAT:
        return sqlite3_column_double(statement_, column);
      case SQLITE_TEXT:
        return Text(column);
      default:
        return nullptr;
    }
  }

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int status_ = SQLITE_OK, bound_ = 0;
};

// Rolled back unless it was committed.
class Transaction final {
 public:
  explicit Transaction(sqlite3* database)
      : database_(database), begun_(Execute(database, "BEGIN IMMEDIATE")) {}
  ~Transaction() {
    if (begun_.ok() && !committed_) Execute(database_, "ROLLBACK").IgnoreError();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  const absl::Status& begun() const { return begun_; }
  absl::Status Commit() {
    absl::Status done = Execute(database_, "COMMIT");
    committed_ = done.ok();
    return done;
  }

 private:
  sqlite3* database_;
  absl::Status begun_;
  bool committed_ = false;
};

}  // namespace shardlab
