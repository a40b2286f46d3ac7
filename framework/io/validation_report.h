#pragma once
// What `shardlab validate` prints: a table by source for a person, one JSON document for a program
// (schema "shardlab.validation/1": every row with prediction, measurement, error, or the reason why
// it was not judged).
//
//   out << ValidationText(validation, {.rows = true}, style);

#include <nlohmann/json.hpp>
#include <string>

#include "io/text_style.h"
#include "io/validation.h"

namespace shardlab {

struct ValidationTextOptions {
  std::string file;
  bool rows = false;  // one line for each row as well
};

std::string ValidationText(const Validation& validation, const ValidationTextOptions& options,
                           const TextStyle& style);
nlohmann::ordered_json ValidationDocument(const Validation& validation, const std::string& file);

}  // namespace shardlab
