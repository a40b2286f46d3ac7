#include "io/condition.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab {

struct Condition::Node {
  enum Kind { kConstant, kName, kUnary, kBinary, kCall };
  Kind kind = kConstant;
  Scalar constant = 0.0;
  std::string word;  // the name, the operator, the function
  std::vector<std::shared_ptr<const Node>> parts;
};

namespace {

using Node = Condition::Node;
using NodePointer = std::shared_ptr<const Node>;
using Scalar = Condition::Scalar;

const std::vector<std::string> kFunctions = {"min", "max", "abs", "floor", "ceil"};
constexpr int kDeepest = 100;  // parentheses; a file must not exhaust the stack

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool BeginsName(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool InName(char c) { return BeginsName(c) || IsDigit(c) || c == '.' || c == '[' || c == ']'; }

class Parser {
 public:
  Parser(const std::string& text, const Place& place, Diagnostics* diagnostics)
      : text_(text), place_(place), diagnostics_(*diagnostics) {}

  NodePointer All(std::vector<std::pair<std::string, Place>>* names) {
    NodePointer root = Level(0);
    if (root == nullptr) return nullptr;
    Skip();
    if (at_ < text_.size()) {
      const bool assignment = text_[at_] == '=';
      return Fail(absl::StrCat("\"", text_.substr(at_, 1), "\" does not belong here"),
                  assignment ? "equality is written ==" : "");
    }
    *names = std::move(names_);
    return root;
  }

 private:
  // Loosest first.
  static const std::vector<std::vector<std::string>>& Levels() {
    static const auto* const levels = new std::vector<std::vector<std::string>>{
        {"||"}, {"&&"}, {"==", "!=", "<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
    return *levels;
  }

  void Skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  Place At(std::size_t offset) const {
    Place place = place_;
    // Behind the opening quote of a string on one line.
    if (place.column > 0) place.column += 1 + static_cast<int>(offset);
    return place;
  }

  NodePointer Fail(const std::string& why, const std::string& hint = "") {
    std::string message = absl::StrCat("the condition cannot be read: ", why);
    if (place_.line == 0)
      absl::StrAppend(&message, " (", text_.substr(0, at_), " <here> ", text_.substr(at_), ")");
    diagnostics_.Error("condition.syntax", At(std::min(at_, text_.size())), message, hint);
    return nullptr;
  }

  std::string Operator(std::size_t level) {
    Skip();
    for (const std::string& op : Levels()[level]) {
      if (text_.compare(at_, op.size(), op) == 0) return op;
    }
    return "";
  }

  NodePointer Level(std::size_t level) {
    if (level == Levels().size()) return Unary();
    NodePointer left = Level(level + 1);
    while (left != nullptr) {
      const std::string op = Operator(level);
      if (op.empty()) return left;
      at_ += op.size();
      NodePointer right = Level(level + 1);
      if (right == nullptr) return nullptr;
      auto node = std::make_shared<Node>();
      node->kind = Node::kBinary;
      node->word = op;
      node->parts = {std::move(left), std::move(right)};
      left = std::move(node);
    }
    return left;
  }

  NodePointer Unary() {
    Skip();
    if (depth_ > kDeepest) return Fail("it is nested too deeply");
    if (at_ < text_.size() && (text_[at_] == '!' || text_[at_] == '-')) {
      auto node = std::make_shared<Node>();
      node->kind = Node::kUnary;
      node->word = text_[at_++];
      ++depth_;
      NodePointer inside = Unary();
      --depth_;
      if (inside == nullptr) return nullptr;
      node->parts = {std::move(inside)};
      return node;
    }
    return Primary();
  }

  NodePointer Constant(Scalar value) const {
    auto node = std::make_shared<Node>();
    node->constant = std::move(value);
    return node;
  }

  NodePointer Primary() {
    if (at_ >= text_.size()) return Fail("it ends where a value is expected");
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      ++depth_;
      NodePointer inside = Level(0);
      --depth_;
      if (inside == nullptr) return nullptr;
      return Close() ? inside : nullptr;
    }
    if (c == '"' || c == '\'') {
      const std::size_t end = text_.find(c, at_ + 1);
      if (end == std::string::npos) return Fail("a word's quote is not closed");
      std::string word = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return Constant(std::move(word));
    }
    if (IsDigit(c) || c == '.') {
      const char* begin = text_.c_str() + at_;
      char* end = nullptr;
      const double number = std::strtod(begin, &end);
      if (end == begin) return Fail("a number is expected");
      at_ += static_cast<std::size_t>(end - begin);
      return Constant(number);
    }
    if (BeginsName(c)) return Name();
    return Fail(absl::StrCat("\"", text_.substr(at_, 1), "\" where a value is expected"));
  }

  bool Close() {
    Skip();
    if (at_ < text_.size() && text_[at_] == ')') {
      ++at_;
      return true;
    }
    Fail("a ) is missing");
    return false;
  }

  NodePointer Name() {
    const std::size_t from = at_;
    while (at_ < text_.size() && InName(text_[at_])) ++at_;
    const std::string word = text_.substr(from, at_ - from);
    if (word == "true" || word == "false") return Constant(word == "true");
    auto node = std::make_shared<Node>();
    node->word = word;
    Skip();
    if (at_ >= text_.size() || text_[at_] != '(') {
      node->kind = Node::kName;
      const bool known = std::any_of(names_.begin(), names_.end(),
                                     [&](const auto& name) { return name.first == word; });
      if (!known) names_.emplace_back(word, At(from));
      return node;
    }
    if (std::find(kFunctions.begin(), kFunctions.end(), word) == kFunctions.end()) {
      at_ = from;
      return Fail(absl::StrCat("there is no function \"", word, "\""),
                  absl::StrCat("functions: ", Enumerate(kFunctions)));
    }
    node->kind = Node::kCall;
    ++at_;
    ++depth_;
    while (true) {
      NodePointer part = Level(0);
      if (part == nullptr) return nullptr;
      node->parts.push_back(std::move(part));
      Skip();
      if (at_ >= text_.size() || text_[at_] != ',') break;
      ++at_;
    }
    --depth_;
    const bool one = word != "min" && word != "max";
    if (one && node->parts.size() != 1) return Fail(absl::StrCat(word, " takes one number"));
    return Close() ? node : nullptr;
  }

  const std::string& text_;
  const Place& place_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::pair<std::string, Place>> names_;
};

class Asker {
 public:
  Asker(const Condition::LookUp& look_up, std::string* problem)
      : look_up_(look_up), problem_(*problem) {}

  std::optional<Scalar> Of(const Node& node) {
    switch (node.kind) {
      case Node::kConstant:
        return node.constant;
      case Node::kName: {
        std::optional<Scalar> value = look_up_(node.word);
        if (!value && problem_.empty())
          problem_ = absl::StrCat("\"", node.word, "\" stands for nothing");
        return value;
      }
      case Node::kUnary:
        return Unary(node);
      case Node::kCall:
        return Call(node);
      case Node::kBinary:
        break;
    }
    return Binary(node);
  }

  std::optional<bool> Truth(const Node& node) {
    const std::optional<Scalar> value = Of(node);
    if (!value) return std::nullopt;
    if (const bool* truth = std::get_if<bool>(&*value)) return *truth;
    problem_ = absl::StrCat(Shown(node), " is neither true nor false");
    return std::nullopt;
  }

 private:
  static std::string Shown(const Node& node) {
    if (node.kind == Node::kName) return absl::StrCat("\"", node.word, "\"");
    if (node.kind == Node::kConstant) return "a constant";
    return absl::StrCat("what \"", node.word, "\" gives");
  }

  std::optional<double> Number(const Node& node) {
    const std::optional<Scalar> value = Of(node);
    if (!value) return std::nullopt;
    if (const double* number = std::get_if<double>(&*value)) return *number;
    problem_ = absl::StrCat(Shown(node), " is no number");
    return std::nullopt;
  }

  std::optional<Scalar> Unary(const Node& node) {
    if (node.word == "!") {
      const std::optional<bool> truth = Truth(*node.parts[0]);
      return truth ? std::optional<Scalar>(!*truth) : std::nullopt;
    }
    const std::optional<double> number = Number(*node.parts[0]);
    return number ? std::optional<Scalar>(-*number) : std::nullopt;
  }

  std::optional<Scalar> Call(const Node& node) {
    std::vector<double> numbers;
    for (const NodePointer& part : node.parts) {
      const std::optional<double> number = Number(*part);
      if (!number) return std::nullopt;
      numbers.push_back(*number);
    }
    if (node.word == "min") return *std::min_element(numbers.begin(), numbers.end());
    if (node.word == "max") return *std::max_element(numbers.begin(), numbers.end());
    if (node.word == "abs") return std::abs(numbers[0]);
    return node.word == "floor" ? std::floor(numbers[0]) : std::ceil(numbers[0]);
  }

  std::optional<Scalar> Binary(const Node& node) {
    const std::string& op = node.word;
    if (op == "&&" || op == "||") {
      const std::optional<bool> left = Truth(*node.parts[0]);
      if (!left) return std::nullopt;
      if (*left == (op == "||")) return *left;
      const std::optional<bool> right = Truth(*node.parts[1]);
      return right ? std::optional<Scalar>(*right) : std::nullopt;
    }
    if (op == "==" || op == "!=") {
      const std::optional<Scalar> left = Of(*node.parts[0]), right = Of(*node.parts[1]);
      if (!left || !right) return std::nullopt;
      // A word never equals a number: "all" beside 8 is how shards are written.
      return (*left == *right) == (op == "==");
    }
    const std::optional<double> left = Number(*node.parts[0]);
    if (!left) return std::nullopt;
    const std::optional<double> right = Number(*node.parts[1]);
    if (!right) return std::nullopt;
    if (op == "<") return *left < *right;
    if (op == "<=") return *left <= *right;
    if (op == ">") return *left > *right;
    if (op == ">=") return *left >= *right;
    if (op == "+") return *left + *right;
    if (op == "-") return *left - *right;
    if (op == "*") return *left * *right;
    if (*right == 0) {
      problem_ = "it divides by zero";
      return std::nullopt;
    }
    return op == "/" ? *left / *right : std::fmod(*left, *right);
  }

  const Condition::LookUp& look_up_;
  std::string& problem_;
};

}  // namespace

std::optional<Condition> Condition::Parse(const std::string& text, const Place& place,
                                          Diagnostics* diagnostics) {
  Condition condition;
  condition.text_ = text;
  condition.place_ = place;
  condition.root_ = Parser(text, place, diagnostics).All(&condition.names_);
  if (condition.root_ == nullptr) return std::nullopt;
  return condition;
}

std::optional<bool> Condition::Holds(const LookUp& look_up, std::string* problem) const {
  problem->clear();
  return Asker(look_up, problem).Truth(*root_);
}

}  // namespace shardlab
