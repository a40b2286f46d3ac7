#pragma once
// A value as a user wrote it, with its place: what scenarios, presets and machine files are read
// into. TOML's types, without TOML's library in any public header.
//
//   const Value* degree = table.Find("degree");
//   if (degree && degree->kind == Value::kInteger) use(degree->integer, degree->place);

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/export.h"

namespace shardlab {

struct SHARDLAB_EXPORT Value {
  enum Kind { kNone, kBoolean, kInteger, kNumber, kText, kArray, kTable };

  Kind kind = kNone;
  Place place;      // of the value
  Place key_place;  // of its key, where it has one
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;  // also set for integers
  std::string text;
  std::vector<Value> array;
  std::vector<std::pair<std::string, Value>> table;  // in the order of the file

  // Defined where a pair of a name and a Value is complete: clang 14 asks for that.
  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  const Value* Find(std::string_view key) const;
  Value* Find(std::string_view key);
  // By dotted path through tables, "strategy.tensor.degree"; nullptr when a step is missing.
  const Value* FindPath(std::string_view path) const;

  static Value Boolean(bool value);
  static Value Integer(std::int64_t value);
  static Value Number(double value);
  static Value Text(std::string value);
  static const char* Name(Kind kind);  // "a whole number", "a table", ...
};

}  // namespace shardlab
