#include "io/sweep_lookup.h"

#include <algorithm>

#include "io/expectations.h"
#include "io/parameter_io.h"

namespace shardlab {

using Json = nlohmann::ordered_json;
using Scalar = Condition::Scalar;

std::optional<Scalar> ScalarOf(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return std::nullopt;
}

const Json* AtDotted(const Json& json, const std::string& path) {
  const Json* at = &json;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    if (!at->is_object()) return nullptr;
    const auto found = at->find(path.substr(from, dot - from));
    if (found == at->end()) return nullptr;
    at = &*found;
    from = dot + 1;
  }
  return at;
}

std::optional<Scalar> KeyValue(const Scenario& with, const Json& defaults,
                               const std::string& name) {
  if (const Value* value = with.root.FindPath(name)) return ScalarOf(ValueToJson(*value));
  const Json* json = AtDotted(defaults, name);
  return json != nullptr ? ScalarOf(*json) : std::nullopt;
}

std::optional<Scalar> InDocument(const Json& document, const std::string& name) {
  std::string problem, hint;
  if (const Json* found = AtPath(document, name, &problem, &hint)) return ScalarOf(*found);
  const Json* key = AtDotted(document["resolved"], name);
  return key != nullptr ? ScalarOf(*key) : std::nullopt;
}

}  // namespace shardlab
