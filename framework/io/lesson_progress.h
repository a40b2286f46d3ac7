#pragma once
// What a learner has done, kept in their data folder ($XDG_DATA_HOME/shardlab/lessons.json, else
// ~/.local/share). Written whole beside the old file and renamed over it, so that a crash leaves
// one or the other. Several programs may keep progress at once: each writes the steps that it
// changed over what the file holds by then. A file that cannot be read is put aside, not lost.
//
//   LessonProgress progress = ReadProgress(ProgressPath(), diagnostics);
//   progress.At("zero-stages")["done"] = true;
//   WriteProgress(&progress, diagnostics);

#include <nlohmann/json.hpp>
#include <string>

#include "base/diagnostic.h"

namespace shardlab {

struct LessonProgress {
  std::string path;  // empty: nowhere to keep it
  nlohmann::ordered_json steps = nlohmann::ordered_json::object();
  nlohmann::ordered_json read = nlohmann::ordered_json::object();  // the steps as the file had them
  bool forget = false;  // what others have written meanwhile is forgotten too

  // Of a step: {done, set: [...], tries: {question: n}, passed: [question], job: {...}}
  nlohmann::ordered_json& At(const std::string& slug);
  bool Done(const std::string& slug) const;
};

// Empty when the environment names no folder.
std::string ProgressPath();
// A file that cannot be opened or put aside is left alone, and nothing is kept then.
LessonProgress ReadProgress(const std::string& path, Diagnostics& diagnostics);
// Afterwards `progress` is what the file holds. False, with a warning, when it could not be kept.
bool WriteProgress(LessonProgress* progress, Diagnostics& diagnostics);

}  // namespace shardlab
