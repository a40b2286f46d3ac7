#pragma once
// What a learner has done, kept in their data folder ($XDG_DATA_HOME/shardlab/lessons.json, else
// ~/.local/share). Written whole beside the old file and renamed over it, so that a crash leaves
// one or the other. A file that cannot be read is put aside, not lost.
//
//   LessonProgress progress = ReadProgress(ProgressPath(), diagnostics);
//   progress.At("zero-stages")["done"] = true;
//   WriteProgress(progress, diagnostics);

#include <nlohmann/json.hpp>
#include <string>

#include "base/diagnostic.h"

namespace shardlab {

struct LessonProgress {
  std::string path;  // empty: nowhere to keep it
  nlohmann::ordered_json steps = nlohmann::ordered_json::object();

  // Of a step: {done, set: [...], tries: {question: n}, passed: [question], job: {...}}
  nlohmann::ordered_json& At(const std::string& slug);
  bool Done(const std::string& slug) const;
};

// Empty when the environment names no folder.
std::string ProgressPath();
LessonProgress ReadProgress(const std::string& path, Diagnostics& diagnostics);
// False, with a warning, when it could not be kept.
bool WriteProgress(const LessonProgress& progress, Diagnostics& diagnostics);

}  // namespace shardlab
