#pragma once
// The course's expressions (io/lesson_expression.h) for tests: over documents that are all there,
// with mistakes thrown. One evaluator serves both: what lesson.json compares with are numbers that
// lesson_numbers.py worked out without any document, so a second parser would check nothing more;
// the grammar has tests of its own (expression_test.cpp).
//
//   Evaluate("ceil(one:memory.peak_bytes / one:hardware.memory_bytes)", documents).value

#include <functional>
#include <stdexcept>
#include <string>

#include "io/lesson_expression.h"
#include "nlohmann/json.hpp"

namespace shardlab::golden {

using Number = ExpressionNumber;

class ExpressionError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Documents = std::function<const nlohmann::ordered_json&(const std::string& id)>;

Number Evaluate(const std::string& expression, const Documents& documents);

// All that a reference selects, as a JSON array: "pipeline_ranks:[legal=true].label".
nlohmann::ordered_json Select(const std::string& reference, const Documents& documents);

}  // namespace shardlab::golden
