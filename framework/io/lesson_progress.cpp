#include "io/lesson_progress.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shardlab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSchema = "shardlab.progress/1";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

using Json = nlohmann::ordered_json;

bool AreTexts(const Json& list) {
  if (!list.is_array()) return false;
  for (const Json& one : list)
    if (!one.is_string()) return false;
  return true;
}

// Only what this program writes is used: another shape could make every later access throw.
bool HasOnly(const Json& object,
             std::initializer_list<std::pair<const char*, bool (*)(const Json&)>> known) {
  if (!object.is_object()) return false;
  for (const auto& [key, test] : known)
    if (object.contains(key) && !test(object.at(key))) return false;
  return true;
}
bool IsNumber(const Json& value) { return value.is_number(); }
bool IsJob(const Json& job) {
  return HasOnly(job, {{"set", AreTexts},
                       {"steps", [](const Json& v) { return v.is_number_unsigned(); }},
                       {"clock_seconds", IsNumber},
                       {"tokens", IsNumber}});
}
bool IsStep(const Json& step) {
  return HasOnly(step, {{"done", [](const Json& v) { return v.is_boolean(); }},
                        {"passed", AreTexts},
                        {"tries", [](const Json& v) { return v.is_object(); }},
                        {"set", AreTexts},
                        {"job", IsJob}});
}

// The steps of a file's text; null when they are not what this program writes.
Json StepsOf(const std::string& text) {
  const Json read = Json::parse(text, nullptr, false);
  if (!read.is_object() || read.value("schema", Json()) != kSchema || !read.contains("steps") ||
      !read.at("steps").is_object())
    return nullptr;
  for (const auto& [slug, step] : read.at("steps").items())
    if (!IsStep(step)) return nullptr;
  return read.at("steps");
}

// Moves a file that cannot be used to a name that is free; empty when that fails.
std::string PutAside(const std::string& path) {
  constexpr int kMost = 100;  // of one learner's broken files
  for (int i = 1; i <= kMost; ++i) {
    const std::string aside = absl::StrCat(path, ".unreadable", i == 1 ? "" : absl::StrCat("-", i));
    std::error_code failed;
    if (fs::exists(aside, failed)) continue;
    fs::rename(path, aside, failed);
    return failed ? "" : aside;
  }
  return "";
}

// One step by two programs: what either has passed is passed, all else is the later one's.
Json Merged(const Json& theirs, Json mine) {
  if (!theirs.is_object() || !mine.is_object()) return mine;
  if (theirs.value("done", false)) mine["done"] = true;
  if (!theirs.contains("passed")) return mine;
  Json passed = theirs.at("passed");
  if (mine.contains("passed"))
    for (const Json& one : mine.at("passed"))
      if (std::find(passed.begin(), passed.end(), one) == passed.end()) passed.push_back(one);
  mine["passed"] = std::move(passed);
  return mine;
}

// Held while the file is read again and written. Without it (a file system that has no locks) two
// programs may still lose each other's last step, never the file.
class Lock {
 public:
  explicit Lock(const std::string& path)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    constexpr int kTries = 200;  // of 10 ms: nobody holds it for so long, unless it was stopped
    constexpr int kWaitMicroseconds = 10000;
    for (int i = 0; file_ >= 0 && i < kTries && flock(file_, LOCK_EX | LOCK_NB) != 0; ++i)
      usleep(kWaitMicroseconds);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (file_ >= 0) close(file_);
  }

 private:
  int file_;
};

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
  LessonProgress out;
  out.path = path;
  std::error_code failed;
  if (path.empty() || !fs::exists(path, failed)) return out;
  const auto warn = [&](const std::string& message, const std::string& hint) {
    diagnostics.Warning("lesson.progress", {path, 0, 0, ""}, message, hint);
  };
  std::ifstream file(path);
  if (!file) {
    const std::string why = std::strerror(errno);
    out.path.clear();
    warn(absl::StrCat("the progress in it cannot be opened: ", why),
         "it is left as it is, and nothing is kept until it can be read");
    return out;
  }
  std::stringstream text;
  text << file.rdbuf();
  Json steps = StepsOf(text.str());
  if (!steps.is_null()) {
    out.steps = out.read = std::move(steps);
    return out;
  }
  const std::string aside = PutAside(path);
  if (aside.empty()) out.path.clear();
  warn("the progress in it cannot be read",
       aside.empty() ? "it cannot be put aside either, so nothing is kept"
                     : absl::StrCat("it was kept as ", aside, "; the course starts anew"));
  return out;
}

bool WriteProgress(LessonProgress* kept, Diagnostics& diagnostics) {
  LessonProgress& progress = *kept;
  const auto fail = [&](const std::string& why) {
    diagnostics.Warning("lesson.progress", {progress.path, 0, 0, ""},
                        absl::StrCat("progress is not kept: ", why));
    return false;
  };
  if (progress.path.empty()) return fail("neither XDG_DATA_HOME nor HOME is set");
  std::error_code failed;
  fs::create_directories(fs::path(progress.path).parent_path(), failed);
  const Lock lock(progress.path + ".lock");
  Json steps = Json::object();
  if (!progress.forget) {
    std::ifstream file(progress.path);
    std::stringstream text;
    if (file) text << file.rdbuf();
    if (const Json now = StepsOf(text.str()); !now.is_null()) steps = now;
  }
  for (const auto& [slug, step] : progress.steps.items()) {
    const Json before = progress.read.contains(slug) ? progress.read.at(slug) : Json::object();
    if (step != before) steps[slug] = steps.contains(slug) ? Merged(steps.at(slug), step) : step;
  }
  const Json document = {{"schema", kSchema}, {"steps", steps}};
  const std::string text = document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
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
  if (whole && !failed) {
    progress.steps = progress.read = std::move(steps);
    progress.forget = false;
    return true;
  }
  std::error_code ignored;
  fs::remove(beside, ignored);
  return fail(whole ? failed.message() : why);
}

}  // namespace shardlab
