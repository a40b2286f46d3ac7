#pragma once
// A condition that a user writes in a scenario: `when` and `keep` of sweeps, constraints of
// searches. Numbers, "words", true and false, names (dotted, with [index]); + - * / %, comparisons,
// ! && ||, parentheses, and min max abs floor ceil. Parsed once, asked once for each combination.
//
//   auto keep = Condition::Parse("memory.fits && throughput.mfu > 0.3", place, &diagnostics);
//   std::optional<bool> kept = keep->Holds(look_up, &problem);

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.h"

namespace shardlab {

class Condition final {
 public:
  using Scalar = std::variant<bool, double, std::string>;
  // What a name stands for; nothing when it stands for nothing.
  using LookUp = std::function<std::optional<Scalar>(const std::string& name)>;
  struct Node;

  // `place`: of the string in the file; a mistake is told at the column where it is.
  static std::optional<Condition> Parse(const std::string& text, const Place& place,
                                        Diagnostics* diagnostics);

  // Nothing, with the problem in words, where a name is unknown or a number is asked of a word.
  std::optional<bool> Holds(const LookUp& look_up, std::string* problem) const;

  // The names, in order, each once, with their places.
  const std::vector<std::pair<std::string, Place>>& names() const { return names_; }
  const std::string& text() const { return text_; }
  const Place& place() const { return place_; }

 private:
  std::string text_;
  Place place_;
  std::shared_ptr<const Node> root_;
  std::vector<std::pair<std::string, Place>> names_;
};

}  // namespace shardlab
