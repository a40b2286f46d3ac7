#include "io/expectations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/parameter_io.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kDefaultRelative = 1e-9;

// Quantities may be written with their unit, as anywhere in a scenario.
std::optional<double> AsNumber(const Value& value) {
  if (value.kind == Value::kInteger || value.kind == Value::kNumber) return value.number;
  if (value.kind != Value::kText) return std::nullopt;
  for (const Unit unit :
       {Unit::kBytes, Unit::kSeconds, Unit::kBytesPerSecond, Unit::kFlopsPerSecond, Unit::kFlops}) {
    const QuantityResult quantity = ParseQuantity(value.text, unit);
    if (quantity.ok()) return quantity.value;
  }
  return std::nullopt;
}

std::string Shown(const Json& json) {
  return json.is_number() ? ShortNumber(json.get<double>()) : json.dump();
}

class Check {
 public:
  Check(const Json& document, Diagnostics* diagnostics)
      : document_(document), diagnostics_(*diagnostics) {}

  void Table(const Value& table, const std::string& prefix) {
    for (const auto& [key, value] : table.table) {
      const std::string path = prefix.empty() ? key : absl::StrCat(prefix, ".", key);
      if (value.kind == Value::kTable && !IsBound(value)) {
        std::string problem, hint;
        const Json* found = AtPath(document_, path, &problem, &hint);
        if (found != nullptr && !found->is_object()) {
          NoBound(path, value);
          continue;
        }
        Table(value, path);
      } else {
        One(path, value);
      }
    }
  }

 private:
  static bool IsBound(const Value& table) {
    constexpr std::array<const char*, 5> kKeys = {"value", "relative", "absolute", "min", "max"};
    return !table.table.empty() &&
           std::all_of(table.table.begin(), table.table.end(), [&](const auto& entry) {
             return std::find(kKeys.begin(), kKeys.end(), entry.first) != kKeys.end();
           });
  }

  // A scalar of the plan is bounded by something that is no bound.
  void NoBound(const std::string& path, const Value& table) {
    const std::vector<std::string> bounds = {"value", "relative", "absolute", "min", "max"};
    for (const auto& [key, value] : table.table) {
      if (std::find(bounds.begin(), bounds.end(), key) != bounds.end()) continue;
      const std::string near = Nearest(key, bounds);
      diagnostics_.Error(
          "expect.bound", value.key_place.line > 0 ? value.key_place : value.place,
          absl::StrCat(path, " has no bound \"", key, "\""),
          absl::StrCat(near.empty() ? "" : absl::StrCat("did you mean \"", near, "\"? "),
                       "bounds: ", Enumerate(bounds)));
    }
  }

  void Miss(const Value& value, std::string message, std::string hint = "") {
    diagnostics_.Error("expect.missed", value.place, std::move(message), std::move(hint));
  }

  void One(const std::string& path, const Value& value) {
    std::string problem, hint;
    const Json* found = AtPath(document_, path, &problem, &hint);
    if (found == nullptr) {
      diagnostics_.Error("expect.path", value.key_place.line > 0 ? value.key_place : value.place,
                         problem, hint);
      return;
    }
    if (value.kind == Value::kTable) return Bounded(path, value, *found);
    if (found->is_number() && value.kind == Value::kText) {
      const std::optional<double> number = AsNumber(value);
      if (number && *number == found->get<double>()) return;
    } else if (ValueToJson(value) == *found || (found->is_number() && AsNumber(value) &&
                                                *AsNumber(value) == found->get<double>())) {
      return;
    }
    Miss(value, absl::StrCat(path, " is ", Shown(*found), ", not ", ValueToJson(value).dump()));
  }

  void Bounded(const std::string& path, const Value& bound, const Json& found) {
    if (!found.is_number())
      return Miss(bound, absl::StrCat(path, " is ", Shown(found), ", which is no number to bound"));
    const double got = found.get<double>();
    const auto part = [&](const char* key) -> std::optional<double> {
      const Value* value = bound.Find(key);
      if (value == nullptr) return std::nullopt;
      const std::optional<double> number = AsNumber(*value);
      if (!number)
        Miss(*value,
             absl::StrCat(key, " of ", path, " must be a number or a quantity with its unit"));
      return number;
    };
    const std::optional<double> value = part("value"), low = part("min"), high = part("max");
    const std::optional<double> relative = part("relative"), absolute = part("absolute");
    if (value) {
      double allowed = relative   ? *relative * std::abs(*value)
                       : absolute ? 0
                                  : kDefaultRelative * std::abs(*value);
      if (absolute) allowed = std::max(allowed, *absolute);
      if (!(std::abs(got - *value) <= allowed)) {
        const double off = *value != 0 ? (got - *value) / std::abs(*value) : got;
        Miss(bound,
             absl::StrCat(path, " is ", ShortNumber(got), ", not ", ShortNumber(*value), " (",
                          Significant(100 * off, 3), " % off, ",
                          Significant(*value != 0 ? 100 * allowed / std::abs(*value) : allowed, 3),
                          " % allowed)"));
      }
    }
    if (low && got < *low)
      Miss(bound,
           absl::StrCat(path, " is ", ShortNumber(got), ", under the minimum ", ShortNumber(*low)));
    if (high && got > *high)
      Miss(bound,
           absl::StrCat(path, " is ", ShortNumber(got), ", over the maximum ", ShortNumber(*high)));
  }

  const Json& document_;
  Diagnostics& diagnostics_;
};

}  // namespace

const nlohmann::ordered_json* AtPath(const Json& document, const std::string& path,
                                     std::string* problem, std::string* hint) {
  const Json* at = &document;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    std::string step = path.substr(begin, end - begin);
    std::string indices;
    if (const std::size_t bracket = step.find('['); bracket != std::string::npos) {
      indices = step.substr(bracket);
      step.resize(bracket);
    }
    if (!at->is_object() || !at->contains(step)) {
      std::vector<std::string> keys;
      if (at->is_object()) {
        for (const auto& [key, value] : at->items()) keys.push_back(key);
      }
      const std::string near = Nearest(step, keys);
      if (at->is_array()) {
        const std::string before = path.substr(0, begin > 0 ? begin - 1 : 0);
        *problem = absl::StrCat("\"", path, "\" leads through a list");
        *hint = absl::StrCat(before, " is a list: write ", before, "[0]");
        return nullptr;
      }
      *problem = absl::StrCat("the plan has no \"", step, "\" in \"", path, "\"",
                              near.empty() ? "" : absl::StrCat("; did you mean \"", near, "\"?"));
      return nullptr;
    }
    at = &(*at)[step];
    while (!indices.empty()) {
      std::size_t index = 0;
      const auto [rest, error] =
          std::from_chars(indices.data() + 1, indices.data() + indices.size(), index);
      if (error != std::errc() || rest == indices.data() + indices.size() || *rest != ']') {
        *problem = absl::StrCat("\"", indices, "\" in \"", path, "\" is no index: write [0]");
        return nullptr;
      }
      if (!at->is_array() || index >= at->size()) {
        *problem = absl::StrCat("\"", path, "\" has no element ", index,
                                at->is_array() ? absl::StrCat(" of ", at->size()) : "");
        return nullptr;
      }
      at = &(*at)[index];
      indices.erase(0, static_cast<std::size_t>(rest - indices.data()) + 1);
    }
    begin = end + 1;
  }
  return at;
}

void CheckExpectations(const Value& expect, const Json& document, Diagnostics* diagnostics) {
  if (expect.kind == Value::kTable) Check(document, diagnostics).Table(expect, "");
}

}  // namespace shardlab
