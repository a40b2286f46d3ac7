#pragma once
// Small expressions over the JSON documents of `shardlab plan` and named numbers: what the figures
// of the course are kept as.
//
//   EvaluateExpression("ceil(one:memory.peak_bytes / one:hardware.memory_bytes)", scope).value
//
// Numbers, names of the scope, + - * / and parentheses; ceil floor round abs of one number; sum min
// max count of all they are given. `id:path` is what stands at that path of document `id`. A path
// goes through an array by index (`ranks[0]`), through all its elements (`ranks.total_bytes`) or
// through those that a filter leaves (`communication[axis=tensor,phase~forward].bytes`): every
// condition must hold, the operators are = != < <= > >= and ~ (contains), <= and >= allow for the
// last digits of a double, and an element without that field is left out.

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shardlab {

// A byte count of a document is rounded once for each account: `error` is how far that can put
// `value` off, carried through the arithmetic. Everything else in a document is exact.
struct ExpressionNumber {
  double value = 0;
  double error = 0;
};

// What an expression may name. Both answer "not there" with what they return; `problem` says why.
struct ExpressionScope {
  std::function<const nlohmann::ordered_json*(const std::string& id, std::string* problem)>
      document;
  std::function<std::optional<ExpressionNumber>(const std::string& name, std::string* problem)>
      number;
};

struct ExpressionResult {
  ExpressionNumber number;
  std::string problem;  // empty when there is a number
  bool ok() const { return problem.empty(); }
};

ExpressionResult EvaluateExpression(const std::string& expression, const ExpressionScope& scope);

// All that a reference selects, as a JSON array: "pipeline_ranks:[legal=true].label". Null, with a
// problem, when there is nothing to select from.
nlohmann::ordered_json SelectExpression(const std::string& reference, const ExpressionScope& scope,
                                        std::string* problem);

}  // namespace shardlab
