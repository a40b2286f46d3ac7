#include "io/lesson_progress.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace shardlab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSchema = "shardlab.progress/1";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Only what this program writes is used: another shape could make every later access throw.
bool IsStep(const nlohmann::ordered_json& step) {
  if (!step.is_object()) return false;
  const auto is = [&](const char* key, auto test) {
    return !step.contains(key) || test(step.at(key));
  };
  if (!is("done", [](const auto& v) { return v.is_boolean(); })) return false;
  if (!is("passed", [](const auto& v) { return v.is_array(); })) return false;
  if (!is("job", [](const auto& v) { return v.is_object(); })) return false;
  if (!is("tries", [](const auto& v) { return v.is_object(); })) return false;
  if (!is("set", [](const auto& v) { return v.is_array(); })) return false;
  if (!step.contains("set")) return true;
  for (const auto& one : step.at("set"))
    if (!one.is_string()) return false;
  return true;
}

}  // namespace

nlohmann::ordered_json& LessonProgress::At(const std::string& slug) {
  nlohmann::ordered_json& step = steps[slug];
  if (step.is_null()) step = nlohmann::ordered_json::object();
  return step;
}

bool LessonProgress::Done(const std::string& slug) const {
  return steps.contains(slug) && steps.at(slug).value("done", false);
}

std::string ProgressPath() {
  std::string folder = Environment("XDG_DATA_HOME");
  if (folder.empty() || folder[0] != '/') {  // the standard says: a relative one is ignored
    const std::string home = Environment("HOME");
    if (home.empty()) return "";
    folder = home + "/.local/share";
  }
  return folder + "/shardlab/lessons.json";
}

LessonProgress ReadProgress(const std::string& path, Diagnostics& diagnostics) {
  LessonProgress out{path};
  std::ifstream file(path);
  if (path.empty() || !file) return out;
  std::stringstream text;
  text << file.rdbuf();
  nlohmann::ordered_json read = nlohmann::ordered_json::parse(text.str(), nullptr, false);
  bool good = read.is_object() && read.value("schema", nlohmann::ordered_json()) == kSchema &&
              read.contains("steps") && read.at("steps").is_object();
  if (good)
    for (const auto& [slug, step] : read.at("steps").items()) good = good && IsStep(step);
  if (good) {
    out.steps = read.at("steps");
    return out;
  }
  std::error_code failed;
  fs::rename(path, path + ".unreadable", failed);
  diagnostics.Warning("lesson.progress", {path, 0, 0, ""}, "the progress in it cannot be read",
                      absl::StrCat("it was kept as ", path, ".unreadable; the course starts anew"));
  return out;
}

bool WriteProgress(const LessonProgress& progress, Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& why) {
    diagnostics.Warning("lesson.progress", {progress.path, 0, 0, ""},
                        absl::StrCat("progress is not kept: ", why));
    return false;
  };
  if (progress.path.empty()) return fail("neither XDG_DATA_HOME nor HOME is set");
  std::error_code failed;
  fs::create_directories(fs::path(progress.path).parent_path(), failed);
  const nlohmann::ordered_json document = {{"schema", kSchema}, {"steps", progress.steps}};
  const std::string text =
      document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  // Two programs may write at once: each has a file of its own until the rename.
  const std::string beside = absl::StrCat(progress.path, ".", getpid());
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return fail(std::strerror(errno));
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(file, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    written += static_cast<std::size_t>(n);
  }
  const bool whole = written == text.size() && fsync(file) == 0;
  const std::string why = std::strerror(errno);
  close(file);
  if (whole) fs::rename(beside, progress.path, failed);
  if (whole && !failed) return true;
  std::error_code ignored;
  fs::remove(beside, ignored);
  return fail(whole ? failed.message() : why);
}

}  // namespace shardlab
