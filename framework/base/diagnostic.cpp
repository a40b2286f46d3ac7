#include "base/diagnostic.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardlab {

void Diagnostics::Add(Diagnostic diagnostic) { all_.push_back(std::move(diagnostic)); }

void Diagnostics::Error(std::string code, Place place, std::string message, std::string hint) {
  Add({Severity::kError,
       std::move(code),
       std::move(message),
       std::move(place),
       std::move(hint),
       {}});
}

void Diagnostics::Warning(std::string code, Place place, std::string message, std::string hint) {
  Add({Severity::kWarning,
       std::move(code),
       std::move(message),
       std::move(place),
       std::move(hint),
       {}});
}

bool Diagnostics::HasErrors() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::kError; });
}

void Diagnostics::Append(const Diagnostics& other) {
  all_.insert(all_.end(), other.all_.begin(), other.all_.end());
}

void Diagnostics::Sort() {
  std::stable_sort(all_.begin(), all_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.place.file, a.place.line, a.place.column) <
           std::tie(b.place.file, b.place.line, b.place.column);
  });
  std::vector<Diagnostic> kept;
  for (Diagnostic& d : all_) {
    if (std::find(kept.begin(), kept.end(), d) == kept.end()) kept.push_back(std::move(d));
  }
  all_ = std::move(kept);
}

const char* Name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "error";
}

}  // namespace shardlab
