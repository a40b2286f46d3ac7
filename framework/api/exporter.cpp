#include "api/exporter.h"

#include <utility>

namespace shardlab {

Exporter::~Exporter() = default;

ExportInput::ExportInput(const Value& document,
                         std::function<Place(const std::string& key)> place_of,
                         Diagnostics* diagnostics)
    : document_(document), place_of_(std::move(place_of)), diagnostics_(diagnostics) {}

const Value* ExportInput::Find(const std::string& path) const {
  const Value* value = document_.FindPath(path);
  return value == nullptr || value->kind == Value::kNone ? nullptr : value;
}

std::int64_t ExportInput::Integer(const std::string& path, std::int64_t otherwise) const {
  const Value* value = Find(path);
  if (value == nullptr) return otherwise;
  if (value->kind == Value::kInteger) return value->integer;
  return value->kind == Value::kNumber ? static_cast<std::int64_t>(value->number) : otherwise;
}

double ExportInput::Number(const std::string& path, double otherwise) const {
  const Value* value = Find(path);
  if (value == nullptr) return otherwise;
  if (value->kind == Value::kInteger) return static_cast<double>(value->integer);
  return value->kind == Value::kNumber ? value->number : otherwise;
}

bool ExportInput::Boolean(const std::string& path, bool otherwise) const {
  const Value* value = Find(path);
  return value != nullptr && value->kind == Value::kBoolean ? value->boolean : otherwise;
}

std::string ExportInput::Text(const std::string& path, const std::string& otherwise) const {
  const Value* value = Find(path);
  return value != nullptr && value->kind == Value::kText ? value->text : otherwise;
}

std::vector<std::int64_t> ExportInput::Integers(const std::string& path) const {
  std::vector<std::int64_t> numbers;
  const Value* value = Find(path);
  if (value == nullptr || value->kind != Value::kArray) return numbers;
  numbers.reserve(value->array.size());
  for (const Value& item : value->array) numbers.push_back(item.integer);
  return numbers;
}

std::string ExportInput::Title() const {
  std::string title = Text("scenario");
  for (char& c : title) {
    if (static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\' || c == '\x7f') c = ' ';
  }
  return title;
}

void ExportInput::Cannot(const std::string& key, const std::string& message,
                         const std::string& remedy) const {
  diagnostics_->Error("export.unsupported", place_of_(key), message, remedy);
}

void ExportInput::Differs(const std::string& key, const std::string& message,
                          const std::string& hint) const {
  diagnostics_->Warning("export.differs", place_of_(key), message, hint);
}

}  // namespace shardlab
