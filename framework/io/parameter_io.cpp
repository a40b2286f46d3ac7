#include "io/parameter_io.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "io/quantity.h"
#include "io/toml_value.h"
#include "io/utf8.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

std::string Shown(const Value& value) { return Shortened(ToToml(value)); }

std::string Quote(const std::string& text) { return "\"" + text + "\""; }

std::string QuotedWords(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  quoted.reserve(words.size());
  for (const std::string& word : words) quoted.push_back(Quote(word));
  return Enumerate(quoted, "or");
}

// "at least 1", "from 1 to 8"; empty when all is allowed.
std::string Range(double minimum, double maximum, Unit unit) {
  const auto text = [unit](double bound) { return ExactQuantity(bound, unit); };
  const bool low = std::isfinite(minimum);
  const bool high = std::isfinite(maximum);
  if (low && high && minimum == maximum) return text(minimum);
  if (low && high) return "from " + text(minimum) + " to " + text(maximum);
  if (low) return "at least " + text(minimum);
  if (high) return "at most " + text(maximum);
  return "";
}

// The whole number that a text or a number with a point was meant to be, for a hint.
std::string AsInteger(const Value& value) {
  if (value.kind == Value::kNumber && value.number == std::floor(value.number) &&
      std::abs(value.number) < 1e9) {
    return ShortNumber(value.number);
  }
  if (value.kind != Value::kText || value.text.empty() || value.text.size() > 9) return "";
  const std::size_t sign = value.text[0] == '-' ? 1 : 0;
  const bool whole = value.text.size() > sign &&
                     value.text.find_first_not_of("0123456789", sign) == std::string::npos;
  return whole ? value.text : "";
}

// Of one kind in one table or list; nobody reads more, and a wrong file may have a hundred
// thousand.
constexpr int kMostTold = 100;

bool Allowed(const Parameter& parameter, double value) {
  return value >= parameter.minimum && value <= parameter.maximum;
}

Value IntegerList(const std::vector<int>& numbers) {
  Value list;
  list.kind = Value::kArray;
  for (const int n : numbers) list.array.push_back(Value::Integer(n));
  return list;
}

}  // namespace

// --- reading
// --------------------------------------------------------------------------------------------

ParameterReader::ParameterReader(const Value* table, Place table_place,
                                 std::vector<std::string> reserved_keys, Diagnostics* diagnostics,
                                 const Value* defaults)
    : table_(table),
      table_place_(std::move(table_place)),
      reserved_keys_(std::move(reserved_keys)),
      diagnostics_(diagnostics),
      defaults_(defaults) {
  if (table_ != nullptr && table_->kind != Value::kTable) {
    // kNone is a value that was refused, with its reason, when the file was read.
    if (table_->kind != Value::kNone) {
      const std::string& key = table_->place.key;
      Error("value.kind", *table_,
            (key.empty() ? "this" : key) + " must be a table, not " + Value::Name(table_->kind),
            key.empty() ? "" : "write [" + key + "] on a line of its own, its keys below");
    }
    table_ = nullptr;
  }
}

const Value* ParameterReader::Find(const Parameter& parameter) {
  known_.push_back(parameter.name);
  const Value* value = table_ != nullptr ? table_->Find(parameter.name) : nullptr;
  if (value == nullptr && defaults_ != nullptr) value = defaults_->Find(parameter.name);
  return value == nullptr || value->kind == Value::kNone ? nullptr : value;
}

void ParameterReader::Error(const char* code, const Value& value, std::string message,
                            std::string hint) {
  diagnostics_->Error(code, value.place, std::move(message), std::move(hint));
}

void ParameterReader::WrongKind(const Parameter& parameter, const Value& value,
                                const std::string& wanted, std::string hint) {
  std::string what = Value::Name(value.kind);
  if (value.kind == Value::kBoolean || value.kind == Value::kInteger ||
      value.kind == Value::kNumber) {
    what = Shown(value);
  } else if (value.kind == Value::kText) {
    what = "the string " + Shown(value);
  }
  Error("value.kind", value, parameter.name + " must be " + wanted + ", not " + what,
        std::move(hint));
}

bool ParameterReader::InRange(const Parameter& parameter, const std::string& name,
                              const Value& value, double number, Unit unit) {
  if (Allowed(parameter, number)) return true;
  Error("value.range", value,
        name + " must be " + Range(parameter.minimum, parameter.maximum, unit) + ", not " +
            (unit == Unit::kNone ? Shown(value) : ExactQuantity(number, unit)));
  return false;
}

bool ParameterReader::ReadInteger(const Parameter& parameter, const std::string& name,
                                  const Value& value, int* out) {
  Parameter bounds = parameter;
  if (value.integer < std::numeric_limits<int>::min() ||
      value.integer > std::numeric_limits<int>::max()) {
    // The range of the parameter says more, but may be open on this side.
    bounds.minimum = std::max<double>(bounds.minimum, std::numeric_limits<int>::min());
    bounds.maximum = std::min<double>(bounds.maximum, std::numeric_limits<int>::max());
  }
  if (!InRange(bounds, name, value, static_cast<double>(value.integer), Unit::kNone)) return false;
  *out = static_cast<int>(value.integer);
  return true;
}

void ParameterReader::Boolean(const Parameter& parameter, bool* value) {
  const Value* found = Find(parameter);
  if (found == nullptr) return;
  if (found->kind == Value::kBoolean) {
    *value = found->boolean;
    return;
  }
  std::string hint;
  if (found->kind == Value::kText && (found->text == "true" || found->text == "false")) {
    hint = "write it without quotes: " + parameter.name + " = " + found->text;
  } else if (found->kind == Value::kInteger && (found->integer == 0 || found->integer == 1)) {
    hint = "write " + parameter.name + " = " + (found->integer == 1 ? "true" : "false");
  }
  WrongKind(parameter, *found, "true or false", std::move(hint));
}

void ParameterReader::Integer(const Parameter& parameter, int* value) {
  const Value* found = Find(parameter);
  if (found == nullptr) return;
  if (found->kind == Value::kInteger) {
    ReadInteger(parameter, parameter.name, *found, value);
    return;
  }
  const std::string meant = AsInteger(*found);
  WrongKind(parameter, *found, "a whole number",
            meant.empty() ? "" : "write " + parameter.name + " = " + meant);
}

void ParameterReader::Number(const Parameter& parameter, double* value) {
  const Value* found = Find(parameter);
  if (found == nullptr) return;
  if (found->kind != Value::kNumber && found->kind != Value::kInteger) {
    const bool number = found->kind == Value::kText && ParseQuantity(found->text, Unit::kNone).ok();
    WrongKind(parameter, *found, "a number",
              number ? "write it without quotes: " + parameter.name + " = " + found->text : "");
    return;
  }
  if (!std::isfinite(found->number)) {
    Error("value.finite", *found,
          parameter.name + " must be a finite number, not " + Shown(*found));
    return;
  }
  if (InRange(parameter, parameter.name, *found, found->number, Unit::kNone))
    *value = found->number;
}

void ParameterReader::Text(const Parameter& parameter, std::string* value) {
  const Value* found = Find(parameter);
  if (found == nullptr) return;
  const std::vector<std::string>& choices = parameter.choices;
  const std::string legal = choices.empty() ? "" : "legal values: " + QuotedWords(choices);
  if (found->kind != Value::kText) {
    std::string hint = legal;
    if (hint.empty() && found->kind != Value::kArray && found->kind != Value::kTable) {
      hint = "write it in quotes: " + parameter.name + " = " + Quote(Shown(*found));
    }
    WrongKind(parameter, *found, "a string", std::move(hint));
    return;
  }
  if (!choices.empty() && std::find(choices.begin(), choices.end(), found->text) == choices.end()) {
    const std::string nearest = Nearest(found->text, choices);
    Error("value.choice", *found,
          parameter.name + " must be " + QuotedWords(choices) + ", not " + Shown(*found),
          nearest.empty() ? "" : "did you mean " + Quote(nearest) + "?");
    return;
  }
  *value = found->text;
}

void ParameterReader::Amount(const Parameter& parameter, Unit unit, double* value) {
  const Value* found = Find(parameter);
  if (found == nullptr) return;
  if (found->kind == Value::kInteger || found->kind == Value::kNumber) {
    Error("value.unit", *found,
          parameter.name + " must be " + UnitName(unit) +
              " with its unit, in quotes, not the bare number " + Shown(*found),
          "write " + parameter.name + " = " + UnitExamples(unit, Shown(*found)));
    return;
  }
  if (found->kind != Value::kText) {
    WrongKind(parameter, *found, std::string(UnitName(unit)) + " with its unit, in quotes",
              "write " + parameter.name + " = " + UnitExamples(unit, "80"));
    return;
  }
  // Where leaving the key out means something, that may be written too.
  if (found->text == "auto" && !parameter.automatic.empty()) return;
  const QuantityResult quantity = ParseQuantity(found->text, unit);
  if (!quantity.ok()) {
    Error("value.unit", *found, parameter.name + " " + quantity.problem, quantity.hint);
    return;
  }
  if (InRange(parameter, parameter.name, *found, quantity.value, unit)) *value = quantity.value;
}

void ParameterReader::Integers(const Parameter& parameter, std::vector<int>* value) {
  const Value* found = Find(parameter);
  if (found == nullptr) return;
  if (found->kind != Value::kArray) {
    const std::string meant = found->kind == Value::kInteger ? Shown(*found) : AsInteger(*found);
    WrongKind(parameter, *found, "a list of whole numbers",
              "write " + parameter.name + " = [" + (meant.empty() ? "1, 2, 3" : meant) + "]");
    return;
  }
  std::vector<int> numbers;
  int wrong = 0;
  for (std::size_t i = 0; i < found->array.size() && wrong < kMostTold; ++i) {
    const Value& item = found->array[i];
    const std::string name = parameter.name + "[" + std::to_string(i) + "]";
    int number = 0;
    if (item.kind == Value::kInteger) {
      if (!ReadInteger(parameter, name, item, &number)) ++wrong;
    } else {
      Parameter element = parameter;
      element.name = name;
      if (item.kind != Value::kNone) WrongKind(element, item, "a whole number");
      ++wrong;
    }
    numbers.push_back(number);
  }
  if (wrong == 0) *value = std::move(numbers);
}

void ParameterReader::IntegerOr(const Parameter& parameter, const std::string& word, int* value) {
  const Value* found = Find(parameter);
  if (found == nullptr) return;
  if (found->kind == Value::kInteger) {
    ReadInteger(parameter, parameter.name, *found, value);
  } else if (found->kind == Value::kText && found->text == word) {
    *value = 0;
  } else {
    std::string hint;
    if (const std::string meant = AsInteger(*found); !meant.empty()) {
      hint = "write " + parameter.name + " = " + meant;
    } else if (found->kind == Value::kText && !Nearest(found->text, {word}).empty()) {
      hint = "did you mean " + Quote(word) + "?";
    }
    WrongKind(parameter, *found, "a whole number or " + Quote(word), std::move(hint));
  }
}

void ParameterReader::Raw(const Parameter& parameter, Value* value) {
  if (const Value* found = Find(parameter)) *value = *found;
}

void ParameterReader::Finish() {
  if (table_ == nullptr) return;
  std::vector<std::string> legal;
  for (const std::string& name : known_) {
    if (std::find(legal.begin(), legal.end(), name) == legal.end()) legal.push_back(name);
  }
  std::vector<std::string> candidates = legal;
  candidates.insert(candidates.end(), reserved_keys_.begin(), reserved_keys_.end());
  int told = 0;
  for (const auto& [key, value] : table_->table) {
    if (std::find(candidates.begin(), candidates.end(), key) != candidates.end()) continue;
    if (++told > kMostTold) continue;
    std::string hint;
    const std::string nearest = Nearest(key, candidates);
    if (!nearest.empty()) hint = "did you mean " + Quote(nearest) + "? ";
    hint +=
        legal.empty() ? "there are no parameters here" : "legal here: " + Enumerate(legal, "and");
    const std::string where = table_place_.key.empty() ? "" : " in " + table_place_.key;
    diagnostics_->Error("key.unknown", value.key_place, "unknown key " + Quote(key) + where,
                        std::move(hint));
  }
  if (told > kMostTold) {
    diagnostics_->Error("key.unknown", table_place_,
                        "and " + std::to_string(told - kMostTold) + " more unknown keys");
  }
}

Place ParameterReader::PlaceOf(const std::string& name) const {
  const Value* found = table_ != nullptr ? table_->Find(name) : nullptr;
  return found != nullptr ? found->place : table_place_;
}

bool ParameterReader::IsGiven(const std::string& name) const {
  return table_ != nullptr && table_->Find(name) != nullptr;
}

// --- documenting
// ----------------------------------------------------------------------------------------

std::string ParameterDoc::DefaultText() const {
  if (!automatic.empty()) return automatic;
  if (default_value.kind == Value::kNone) return "none";
  if (type == "quantity") return default_value.text;
  return ToToml(default_value);
}

std::string ParameterDoc::RangeText() const {
  return choices.empty() ? Range(minimum, maximum, quantity) : "";
}

Json ParameterDocToJson(const ParameterDoc& doc) {
  Json json;
  json["name"] = ToValidUtf8(doc.name);
  json["type"] = ToValidUtf8(doc.type);
  json["unit"] = doc.unit;
  json["default"] = ValueToJson(doc.default_value);
  json["description"] = ToValidUtf8(doc.description);
  if (!doc.choices.empty()) {
    json["choices"] = Json::array();
    for (const std::string& choice : doc.choices) json["choices"].push_back(ToValidUtf8(choice));
  }
  // As in a scenario: a quantity with its unit, a count without a point.
  const auto bound = [&doc](double value) -> Json {
    if (doc.quantity != Unit::kNone) return ExactQuantity(value, doc.quantity);
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (value == std::floor(value) && std::abs(value) < kExact)
      return static_cast<std::int64_t>(value);
    return value;
  };
  if (std::isfinite(doc.minimum)) json["minimum"] = bound(doc.minimum);
  if (std::isfinite(doc.maximum)) json["maximum"] = bound(doc.maximum);
  if (!doc.automatic.empty()) json["automatic"] = ToValidUtf8(doc.automatic);
  return json;
}

void ParameterDocumenter::Add(const Parameter& parameter, std::string type, Value default_value,
                              Unit unit) {
  ParameterDoc doc;
  doc.name = parameter.name;
  doc.type = std::move(type);
  doc.unit = UnitSymbol(unit);
  doc.quantity = unit;
  if (parameter.automatic.empty()) doc.default_value = std::move(default_value);
  doc.description = parameter.description;
  doc.choices = parameter.choices;
  doc.minimum = parameter.minimum;
  doc.maximum = parameter.maximum;
  doc.automatic = parameter.automatic;
  docs_.push_back(std::move(doc));
}

void ParameterDocumenter::Boolean(const Parameter& parameter, bool* value) {
  Add(parameter, "boolean", Value::Boolean(*value));
}

void ParameterDocumenter::Integer(const Parameter& parameter, int* value) {
  Add(parameter, "integer", Value::Integer(*value));
}

void ParameterDocumenter::Number(const Parameter& parameter, double* value) {
  Add(parameter, "number", Value::Number(*value));
}

void ParameterDocumenter::Text(const Parameter& parameter, std::string* value) {
  Add(parameter, "string", Value::Text(*value));
}

void ParameterDocumenter::Amount(const Parameter& parameter, Unit unit, double* value) {
  Add(parameter, "quantity", Value::Text(ExactQuantity(*value, unit)), unit);
}

void ParameterDocumenter::Integers(const Parameter& parameter, std::vector<int>* value) {
  Add(parameter, "list of integers", IntegerList(*value));
}

void ParameterDocumenter::IntegerOr(const Parameter& parameter, const std::string& word,
                                    int* value) {
  Add(parameter, "integer or " + Quote(word),
      *value == 0 ? Value::Text(word) : Value::Integer(*value));
}

void ParameterDocumenter::Raw(const Parameter& parameter, Value* value) {
  Add(parameter, "table", *value);
}

// --- resolving
// ------------------------------------------------------------------------------------------

ParameterResolver::ParameterResolver(Json* object) : object_(object) {
  if (!object_->is_object()) *object_ = Json::object();
}

void ParameterResolver::Boolean(const Parameter& parameter, bool* value) {
  (*object_)[parameter.name] = *value;
}

void ParameterResolver::Integer(const Parameter& parameter, int* value) {
  Json& json = (*object_)[parameter.name];
  const bool stands_for = !parameter.automatic.empty() && !Allowed(parameter, *value);
  json = stands_for ? Json() : Json(*value);
}

void ParameterResolver::Number(const Parameter& parameter, double* value) {
  Json& json = (*object_)[parameter.name];
  const bool stands_for = !parameter.automatic.empty() && !Allowed(parameter, *value);
  json = stands_for || !std::isfinite(*value) ? Json() : Json(*value);
}

void ParameterResolver::Text(const Parameter& parameter, std::string* value) {
  Json& json = (*object_)[parameter.name];
  const bool stands_for = !parameter.automatic.empty() && value->empty();
  json = stands_for ? Json() : Json(ToValidUtf8(*value));
}

void ParameterResolver::Amount(const Parameter& parameter, Unit unit, double* value) {
  Json& json = (*object_)[parameter.name];
  const bool stands_for =
      !parameter.automatic.empty() && (*value < 0 || !Allowed(parameter, *value));
  json = stands_for || !std::isfinite(*value) ? Json() : Json(ExactQuantity(*value, unit));
}

void ParameterResolver::Integers(const Parameter& parameter, std::vector<int>* value) {
  Json& json = (*object_)[parameter.name];
  const bool stands_for = !parameter.automatic.empty() && value->empty();
  json = stands_for ? Json() : Json(*value);
}

void ParameterResolver::IntegerOr(const Parameter& parameter, const std::string& word, int* value) {
  (*object_)[parameter.name] = *value == 0 ? Json(word) : Json(*value);
}

void ParameterResolver::Raw(const Parameter& parameter, Value* value) {
  (*object_)[parameter.name] = ValueToJson(*value);
}

Json ValueToJson(const Value& value) {
  switch (value.kind) {
    case Value::kNone:
      return Json();
    case Value::kBoolean:
      return value.boolean;
    case Value::kInteger:
      return value.integer;
    case Value::kNumber:
      return std::isfinite(value.number) ? Json(value.number) : Json();
    case Value::kText:
      return ToValidUtf8(value.text);
    case Value::kArray: {
      Json json = Json::array();
      for (const Value& item : value.array) json.push_back(ValueToJson(item));
      return json;
    }
    case Value::kTable: {
      Json json = Json::object();
      for (const auto& [name, item] : value.table) json[ToValidUtf8(name)] = ValueToJson(item);
      return json;
    }
  }
  return Json();
}

}  // namespace shardlab
