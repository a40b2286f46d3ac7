#include "api/value.h"

namespace shardlab {

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

const Value* Value::Find(std::string_view key) const {
  for (const auto& [name, value] : table) {
    if (name == key) return &value;
  }
  return nullptr;
}

Value* Value::Find(std::string_view key) {
  return const_cast<Value*>(static_cast<const Value*>(this)->Find(key));
}

const Value* Value::FindPath(std::string_view path) const {
  const Value* at = this;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    at = at->Find(path.substr(0, dot));
    if (at == nullptr || dot == std::string_view::npos) return at;
    path.remove_prefix(dot + 1);
  }
  return at;
}

Value Value::Boolean(bool value) {
  Value v;
  v.kind = kBoolean;
  v.boolean = value;
  return v;
}

Value Value::Integer(std::int64_t value) {
  Value v;
  v.kind = kInteger;
  v.integer = value;
  v.number = static_cast<double>(value);
  return v;
}

Value Value::Number(double value) {
  Value v;
  v.kind = kNumber;
  v.number = value;
  return v;
}

Value Value::Text(std::string value) {
  Value v;
  v.kind = kText;
  v.text = std::move(value);
  return v;
}

const char* Value::Name(Kind kind) {
  switch (kind) {
    case kNone:
      return "nothing";
    case kBoolean:
      return "true or false";
    case kInteger:
      return "a whole number";
    case kNumber:
      return "a number";
    case kText:
      return "a string";
    case kArray:
      return "a list";
    case kTable:
      return "a table";
  }
  return "nothing";
}

}  // namespace shardlab
