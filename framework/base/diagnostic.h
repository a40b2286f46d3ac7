#pragma once
// What is wrong with a user's input, as data: every mistake of meaning at once, each with its
// place, the reason and what would be legal. Nothing in the framework prints or exits on a user's
// mistake.
//
//   diagnostics.Error("value.unit", place, "memory has no unit", "write \"80 GB\" or \"80 GiB\"");
//   if (diagnostics.HasErrors()) return ...;

#include <string>
#include <vector>

#include "base/export.h"

namespace shardlab {

// Where in the user's input: lines and columns count from 1; 0 means that the place has no line (a
// --set override, say), an empty file that it has no file.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  std::string key;  // the dotted key, "strategy.tensor.degree"; empty where there is none

  friend bool operator==(const Place&, const Place&) = default;
};

enum class Severity { kNote, kWarning, kError };

struct Diagnostic {
  Severity severity = Severity::kError;
  std::string code;     // stable and dotted, for scripts: "key.unknown"
  std::string message;  // "problem (why)"
  Place place;
  std::string hint;                 // what would be legal; may be empty
  std::vector<Place> other_places;  // the second culprit of a contradiction

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

class SHARDLAB_EXPORT Diagnostics final {
 public:
  void Add(Diagnostic diagnostic);
  void Error(std::string code, Place place, std::string message, std::string hint = "");
  void Warning(std::string code, Place place, std::string message, std::string hint = "");

  bool HasErrors() const;
  bool empty() const { return all_.empty(); }
  const std::vector<Diagnostic>& all() const { return all_; }
  void Append(const Diagnostics& other);
  // In order of file, line and column, doubles removed: what a person reads top to bottom.
  void Sort();

 private:
  std::vector<Diagnostic> all_;
};

SHARDLAB_EXPORT const char* Name(Severity severity);

}  // namespace shardlab
