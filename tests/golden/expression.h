#pragma once
// Small expressions over the JSON documents of `shardlab plan`.
//
//   Evaluate("ceil(one:memory.peak_bytes / one:hardware.memory_bytes)", documents).value
//
// Numbers, + - * / and parentheses; ceil floor round abs of one number; sum min max count of all
// they are given. `id:path` is what stands at that path of document `id`. A path goes through an
// array by index (`ranks[0]`), through all its elements (`ranks.total_bytes`) or through those that
// a filter leaves
// (`communication[axis=tensor,phase~forward].bytes`): every condition must hold, the operators are
// = != < <= > >= and ~ (contains), <= and >= allow for the last digits of a double, and an element
// without that field is left out.

#include <functional>
#include <stdexcept>
#include <string>

#include "nlohmann/json.hpp"

namespace shardlab::golden {

// A byte count of a document is rounded once for each account: `error` is how far that can put
// `value` off, carried through the arithmetic. Everything else in a document is exact.
struct Number {
  double value = 0;
  double error = 0;
};

class ExpressionError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Documents = std::function<const nlohmann::json&(const std::string& id)>;

Number Evaluate(const std::string& expression, const Documents& documents);

// All that a reference selects, as a JSON array: "pipeline_ranks:[legal=true].label".
nlohmann::json Select(const std::string& reference, const Documents& documents);

}  // namespace shardlab::golden
