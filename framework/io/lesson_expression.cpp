#include "io/lesson_expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

namespace shardlab {
namespace {

using json = nlohmann::ordered_json;
using Number = ExpressionNumber;

// Never leaves this file: unwinds a parser that is deep in parentheses.
class ExpressionError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr double kLastDigits = 1e-12;  // of a comparison in a filter

struct Condition {
  std::string path, op, value;
};

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::optional<double> ToDouble(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

const json* Field(const json& object, const std::string& path) {
  const json* at = &object;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    const auto found = at->is_object() ? at->find(path.substr(from, dot - from)) : at->end();
    if (found == at->end()) return nullptr;
    at = &*found;
    from = dot + 1;
  }
  return at;
}

bool Holds(const Condition& condition, const json& element) {
  const json* field = Field(element, condition.path);
  if (field == nullptr) return false;
  const std::string text = field->is_string() ? field->get<std::string>() : field->dump();
  if (condition.op == "~") return text.find(condition.value) != std::string::npos;
  const std::optional<double> wanted = ToDouble(condition.value);
  if (!field->is_number() || !wanted) {
    if (condition.op == "=") return text == condition.value;
    if (condition.op == "!=") return text != condition.value;
    return false;
  }
  const double got = field->get<double>();
  const double slack = kLastDigits * std::abs(*wanted);
  if (condition.op == "=") return got == *wanted;
  if (condition.op == "!=") return got != *wanted;
  if (condition.op == "<") return got < *wanted - slack;
  if (condition.op == "<=") return got <= *wanted + slack;
  if (condition.op == ">") return got > *wanted + slack;
  return got >= *wanted - slack;
}

// Half a byte for each account that is rounded. In textbook accounting four accounts of a rank are
// not zero, so the sums of accounts can be two bytes off.
double RoundingOf(const std::string& name) {
  if (name == "total_bytes" || name == "allocated_bytes" || name == "peak_bytes" ||
      name == "headroom_bytes")
    return 2;
  if (name == "memory_bytes" || name == "capacity_bytes") return 0;
  const bool bytes = name == "bytes" || name == "bytes_per_call" || name.ends_with("_bytes");
  return bytes ? 0.5 : 0;
}

class Parser {
 public:
  Parser(const std::string& text, const ExpressionScope& scope) : text_(text), scope_(scope) {}

  Number All() {
    const std::vector<Number> all = Sum();
    Skip();
    if (at_ != text_.size()) Fail("does not end here");
    return One(all);
  }

  json Selection() {
    std::string name;
    const std::vector<const json*> all = Reference(&name);
    Skip();
    if (at_ != text_.size()) Fail("does not end here");
    json out = json::array();
    for (const json* item : all) out.push_back(*item);
    return out;
  }

 private:
  [[noreturn]] void Fail(const std::string& why) const {
    throw ExpressionError(text_.substr(0, at_) + " <- " + why + " -> " + text_.substr(at_));
  }

  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void Expect(char c) {
    if (!Take(c)) Fail(std::string("expected ") + c);
  }

  std::string Word() {
    const std::size_t from = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  Number One(const std::vector<Number>& all) const {
    if (all.size() != 1) Fail(std::to_string(all.size()) + " numbers where one is wanted");
    return all[0];
  }

  std::vector<Number> Sum() {
    std::vector<Number> left = Product();
    while (true) {
      const bool minus = Take('-');
      if (!minus && !Take('+')) return left;
      const Number a = One(left);
      const Number b = One(Product());
      left = {{a.value + (minus ? -b.value : b.value), a.error + b.error}};
    }
  }

  std::vector<Number> Product() {
    std::vector<Number> left = Factor();
    while (true) {
      const bool over = Take('/');
      if (!over && !Take('*')) return left;
      const Number a = One(left);
      const Number b = One(Factor());
      const double ea = a.error;
      const double eb = b.error;
      if (over) {
        const double quotient = a.value / b.value;
        left = {{quotient, (ea + std::abs(quotient) * eb) / std::abs(b.value)}};
      } else {
        left = {{a.value * b.value, std::abs(a.value) * eb + std::abs(b.value) * ea}};
      }
    }
  }

  std::vector<Number> Factor() {
    if (Take('-')) {
      const Number number = One(Factor());
      return {{-number.value, number.error}};
    }
    if (Take('(')) {
      std::vector<Number> inside = Sum();
      Expect(')');
      return inside;
    }
    Skip();
    if (at_ >= text_.size()) Fail("expected a number");
    if (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      std::size_t used = 0;
      const double value = std::stod(text_.substr(at_), &used);
      at_ += used;
      return {{value, 0}};
    }
    const std::size_t from = at_;
    const std::string name = Word();
    if (Take('(')) return Call(name);
    if (!name.empty() && (at_ >= text_.size() || text_[at_] != ':')) return {Named(name)};
    at_ = from;
    std::string leaf;
    std::vector<Number> out;
    for (const json* item : Reference(&leaf)) {
      const bool number = item->is_number() || item->is_boolean();
      const double value = item->is_boolean() ? item->get<bool>()
                           : number           ? item->get<double>()
                                              : 0;
      out.push_back(number ? Number{value, RoundingOf(leaf)}
                           : Number{std::numeric_limits<double>::quiet_NaN(), 0});
    }
    return out;
  }

  Number Named(const std::string& name) const {
    std::string problem;
    const std::optional<Number> found = scope_.number(name, &problem);
    if (!found) Fail(problem.empty() ? "no number " + name : problem);
    return *found;
  }

  std::vector<Number> Call(const std::string& name) {
    std::vector<Number> all = Sum();
    while (Take(',')) {
      const std::vector<Number> more = Sum();
      all.insert(all.end(), more.begin(), more.end());
    }
    Expect(')');
    if (name == "count") return {{static_cast<double>(all.size()), 0}};
    if (name == "sum") {
      Number out;
      for (const Number& number : all) out = {out.value + number.value, out.error + number.error};
      return {out};
    }
    if (name == "min" || name == "max") {
      if (all.empty()) Fail("nothing to choose from");
      Number out = all[0];
      for (const Number& number : all) {
        const bool better = name == "max" ? number.value > out.value : number.value < out.value;
        out = {better ? number.value : out.value, std::max(out.error, number.error)};
      }
      return {out};
    }
    const Number number = One(all);
    if (name == "ceil") return {{std::ceil(number.value), 0}};
    if (name == "floor") return {{std::floor(number.value), 0}};
    if (name == "round") return {{std::round(number.value), 0}};
    if (name == "abs") return {{std::abs(number.value), number.error}};
    Fail("no function " + name);
  }

  // `leaf` gets the last name of the path.
  std::vector<const json*> Reference(std::string* leaf) {
    Skip();
    const std::string id = Word();
    if (id.empty() || at_ >= text_.size() || text_[at_] != ':') Fail("expected document:path");
    ++at_;
    std::string problem;
    std::vector<const json*> at = {scope_.document(id, &problem)};
    if (at[0] == nullptr) Fail(problem);
    if (at_ < text_.size() && text_[at_] == '[') Bracket(&at);
    while (at_ < text_.size() && (text_[at_] == '.' || IsWord(text_[at_]))) {
      if (text_[at_] == '.') ++at_;
      *leaf = Word();
      std::vector<const json*> next;
      for (const json* item : Spread(at)) {
        const auto found = item->is_object() ? item->find(*leaf) : item->end();
        if (found == item->end()) Fail("no " + *leaf);
        next.push_back(&*found);
      }
      at = std::move(next);
      if (at_ < text_.size() && text_[at_] == '[') Bracket(&at);
    }
    return at;
  }

  static std::vector<const json*> Spread(const std::vector<const json*>& all) {
    std::vector<const json*> out;
    for (const json* item : all) {
      if (!item->is_array()) {
        out.push_back(item);
        continue;
      }
      for (const json& element : *item) out.push_back(&element);
    }
    return out;
  }

  // After the opening bracket: an index, or conditions.
  void Bracket(std::vector<const json*>* at) {
    const std::size_t close = text_.find(']', at_);
    if (close == std::string::npos) Fail("no ]");
    const std::string inside = text_.substr(at_ + 1, close - at_ - 1);
    std::vector<const json*> next;
    if (!inside.empty() &&
        std::all_of(inside.begin(), inside.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      const std::size_t index = std::stoul(inside);
      for (const json* item : *at) {
        if (!item->is_array() || index >= item->size()) Fail("no element " + inside);
        next.push_back(&(*item)[index]);
      }
    } else {
      const std::vector<Condition> conditions = Conditions(inside);
      for (const json* item : *at) {
        if (!item->is_array()) Fail("not an array");
        for (const json& element : *item) {
          const bool all =
              std::all_of(conditions.begin(), conditions.end(),
                          [&](const Condition& condition) { return Holds(condition, element); });
          if (all) next.push_back(&element);
        }
      }
    }
    *at = std::move(next);
    at_ = close + 1;
  }

  std::vector<Condition> Conditions(const std::string& inside) const {
    std::vector<Condition> out;
    for (std::size_t from = 0; from < inside.size();) {
      const std::size_t comma = std::min(inside.find(',', from), inside.size());
      const std::string part = inside.substr(from, comma - from);
      const std::size_t op = part.find_first_of("=!<>~");
      if (op == std::string::npos || op == 0) Fail("not a condition: " + part);
      const std::size_t length = op + 1 < part.size() && part[op + 1] == '=' ? 2 : 1;
      out.push_back({part.substr(0, op), part.substr(op, length), part.substr(op + length)});
      if (out.back().op == "!") Fail("not a condition: " + part);
      from = comma + 1;
    }
    return out;
  }

  const std::string& text_;
  const ExpressionScope& scope_;
  std::size_t at_ = 0;
};

}  // namespace

ExpressionResult EvaluateExpression(const std::string& expression, const ExpressionScope& scope) {
  try {
    const Number number = Parser(expression, scope).All();
    if (!std::isfinite(number.value)) return {number, expression + " is not a number"};
    return {number, ""};
  } catch (const std::exception& error) {
    return {{}, error.what()};
  }
}

json SelectExpression(const std::string& reference, const ExpressionScope& scope,
                      std::string* problem) {
  try {
    return Parser(reference, scope).Selection();
  } catch (const std::exception& error) {
    *problem = error.what();
    return nullptr;
  }
}

}  // namespace shardlab
