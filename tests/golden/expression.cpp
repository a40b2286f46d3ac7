#include "golden/expression.h"

#include <cmath>
#include <optional>

namespace shardlab::golden {
namespace {

// No named numbers; a document that is not there throws, as `documents` does.
ExpressionScope ScopeOf(const Documents& documents) {
  return {[&documents](const std::string& id, std::string*) { return &documents(id); },
          [](const std::string& name, std::string* problem) -> std::optional<ExpressionNumber> {
            *problem = "there is no number " + name;
            return std::nullopt;
          }};
}

}  // namespace

Number Evaluate(const std::string& expression, const Documents& documents) {
  const ExpressionResult result = EvaluateExpression(expression, ScopeOf(documents));
  // What is no number (a text) is told as one that is not finite.
  if (!result.ok() && std::isfinite(result.number.value)) throw ExpressionError(result.problem);
  return result.number;
}

nlohmann::ordered_json Select(const std::string& reference, const Documents& documents) {
  std::string problem;
  nlohmann::ordered_json selected = SelectExpression(reference, ScopeOf(documents), &problem);
  if (!problem.empty()) throw ExpressionError(problem);
  return selected;
}

}  // namespace shardlab::golden
