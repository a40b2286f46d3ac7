#include "io/user_files.h"

#include <utility>

namespace shardlab {

std::string UserFiles::PathOf(const std::string& name) {
  return paths_[name] = (folder_ / name).string();
}

void UserFiles::PutPaths(std::size_t before, Diagnostics* diagnostics) const {
  if (paths_.empty() || diagnostics->all().size() == before) return;
  const auto put = [this](Place* place) {
    const auto found = paths_.find(place->file);
    if (found != paths_.end()) place->file = found->second;
  };
  Diagnostics with_paths;
  for (std::size_t i = 0; i < diagnostics->all().size(); ++i) {
    Diagnostic diagnostic = diagnostics->all()[i];
    if (i >= before) {
      put(&diagnostic.place);
      for (Place& other : diagnostic.other_places) put(&other);
    }
    with_paths.Add(std::move(diagnostic));
  }
  *diagnostics = std::move(with_paths);
}

}  // namespace shardlab
