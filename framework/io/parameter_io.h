#pragma once
// The three things that are done with a plugin's parameters, as visitors: reading them from a table
// of the scenario with every mistake told, documenting them, and writing down the values that hold.
//
//   ParameterReader reader(table, place, {"plugin"}, &diagnostics, accounting_defaults);
//   plugin->Visit(reader);
//   reader.Finish();   // and the keys that no parameter claimed

#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/parameters.h"
#include "api/value.h"
#include "base/diagnostic.h"

namespace shardlab {

// Reads from `table` (null: the user wrote none), else from `defaults` (null: there are none), else
// leaves the struct's own value. A mistake leaves it too and is a diagnostic at the value's place;
// keys in `reserved_keys` belong to the caller. The tables must outlive the reader.
class ParameterReader final : public ParameterVisitor {
 public:
  ParameterReader(const Value* table, Place table_place, std::vector<std::string> reserved_keys,
                  Diagnostics* diagnostics, const Value* defaults = nullptr);

  void Boolean(const Parameter& parameter, bool* value) override;
  void Integer(const Parameter& parameter, int* value) override;
  void Number(const Parameter& parameter, double* value) override;
  void Text(const Parameter& parameter, std::string* value) override;
  void Amount(const Parameter& parameter, Unit unit, double* value) override;
  void Integers(const Parameter& parameter, std::vector<int>* value) override;
  void IntegerOr(const Parameter& parameter, const std::string& word, int* value) override;
  void Raw(const Parameter& parameter, Value* value) override;

  // Reports the user's keys that are neither reserved nor a parameter. Unknown keys of `defaults`
  // are passed over: one table of defaults may serve several plugins.
  void Finish();

  // Where the user wrote the parameter; where the table is when it is not written.
  Place PlaceOf(const std::string& name) const;
  // True when the user wrote it, rightly or wrongly; a default is not given.
  bool IsGiven(const std::string& name) const;

 private:
  // The value to read, or null; notes that the parameter exists.
  const Value* Find(const Parameter& parameter);
  void Error(const char* code, const Value& value, std::string message, std::string hint = "");
  void WrongKind(const Parameter& parameter, const Value& value, const std::string& wanted,
                 std::string hint = "");
  // Whether a whole number is in range; says so when not.
  bool ReadInteger(const Parameter& parameter, const std::string& name, const Value& value,
                   int* out);
  bool InRange(const Parameter& parameter, const std::string& name, const Value& value,
               double number, Unit unit);

  const Value* table_;
  Place table_place_;
  std::vector<std::string> reserved_keys_;
  Diagnostics* diagnostics_;
  const Value* defaults_;
  std::vector<std::string> known_;
};

struct ParameterDoc {
  std::string name;
  std::string type;  // boolean, integer, number, string, quantity, list of integers, table; integer
                     // or "all"
  std::string unit;  // "B", "s", "B/s", "FLOP/s", "FLOP", or empty
  Value default_value;  // a quantity is its text; kNone where `automatic` or nothing stands
  std::string description;
  std::vector<std::string> choices;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::string automatic;

  Unit quantity = Unit::kNone;  // what minimum and maximum are counted in

  std::string DefaultText() const;  // for people: `8`, `"ring"`, `80 GB`, `what is left`
  std::string RangeText() const;    // "at least 1", "from 1 to 8", or empty
};

// {name, type, unit, default, description} and, where there are some, choices, minimum, maximum,
// automatic.
nlohmann::ordered_json ParameterDocToJson(const ParameterDoc& doc);

// Visit a fresh object: its values are the defaults.
class ParameterDocumenter final : public ParameterVisitor {
 public:
  void Boolean(const Parameter& parameter, bool* value) override;
  void Integer(const Parameter& parameter, int* value) override;
  void Number(const Parameter& parameter, double* value) override;
  void Text(const Parameter& parameter, std::string* value) override;
  void Amount(const Parameter& parameter, Unit unit, double* value) override;
  void Integers(const Parameter& parameter, std::vector<int>* value) override;
  void IntegerOr(const Parameter& parameter, const std::string& word, int* value) override;
  void Raw(const Parameter& parameter, Value* value) override;

  const std::vector<ParameterDoc>& docs() const { return docs_; }

 private:
  void Add(const Parameter& parameter, std::string type, Value default_value,
           Unit unit = Unit::kNone);
  std::vector<ParameterDoc> docs_;
};

// Writes the values that hold into a JSON object, as a scenario would: quantities as exact text
// with unit, a word as the word. What still stands for its `automatic` meaning and is no legal
// value itself is null.
class ParameterResolver final : public ParameterVisitor {
 public:
  explicit ParameterResolver(nlohmann::ordered_json* object);

  void Boolean(const Parameter& parameter, bool* value) override;
  void Integer(const Parameter& parameter, int* value) override;
  void Number(const Parameter& parameter, double* value) override;
  void Text(const Parameter& parameter, std::string* value) override;
  void Amount(const Parameter& parameter, Unit unit, double* value) override;
  void Integers(const Parameter& parameter, std::vector<int>* value) override;
  void IntegerOr(const Parameter& parameter, const std::string& word, int* value) override;
  void Raw(const Parameter& parameter, Value* value) override;

 private:
  nlohmann::ordered_json* object_;
};

nlohmann::ordered_json ValueToJson(const Value& value);

}  // namespace shardlab
