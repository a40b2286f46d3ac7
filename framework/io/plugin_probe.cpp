#include "io/plugin_probe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "io/guarded.h"
#include "io/loading_guard.h"
#include "io/parameter_io.h"
#include "io/plugin_kinds.h"

namespace shardlab {
namespace {

// What the child writes, one record a line, fields between the unit separators that no name
// contains: "phase" says what it is about to do, "plugin" what the library registers, "refused" why
// it is no good.
constexpr char kField = '\x1f';

int child_pipe = -1;  // of the child: a terminate handler has no argument

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return text;
}

void Tell(const char* what, const std::string& text) {
  const std::string line = absl::StrCat(what, std::string(1, kField), text, "\n");
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = write(child_pipe, line.data() + done, line.size() - done);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

[[noreturn]] void OnTerminate() {
  const std::string what =
      std::current_exception() == nullptr ? "it calls std::terminate" : DescribeCurrentException();
  Tell("ended", OneLine(what));
  _exit(1);
}

absl::Status TryPlugin(const RegisteredPlugin& plugin) {
  if (FindKind(plugin.kind) == nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<Plugin>> made = MakePlugin(plugin);
  if (!made.ok()) return made.status();
  ParameterDocumenter documenter;
  const std::string what =
      absl::StrCat("cannot list the parameters of ", plugin.kind, " ", plugin.name);
  return Guarded(what, [&] { (*made)->Visit(documenter); });
}

// noexcept: nothing may come out of here, or there would be two parents.
[[noreturn]] void Child(const std::string& path, int pipe_end) noexcept {
  child_pipe = pipe_end;
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // A sanitizer's or a test framework's handlers would turn the signal into something else.
  for (const int signal : LoadingGuard::kSignals) std::signal(signal, SIG_DFL);
  std::set_terminate(&OnTerminate);
  const int null = open("/dev/null", O_RDWR);
  for (int standard = 0; standard < 3; ++standard) dup2(null, standard);

  Tell("phase", "it is loaded");
  absl::StatusOr<PluginLibrary> library = PluginLibrary::Load(path, Ending::kLeaveAlone);
  absl::Status ok = library.status();
  if (ok.ok()) {
    Tell("phase", "its plugins are made");
    for (const RegisteredPlugin& plugin : library->plugins()) {
      if (ok.ok()) ok = TryPlugin(plugin);
      Tell("plugin", absl::StrCat(plugin.kind, std::string(1, kField), plugin.interface_version,
                                  std::string(1, kField), plugin.name, std::string(1, kField),
                                  OneLine(plugin.description)));
    }
  }
  if (!ok.ok()) Tell("refused", OneLine(std::string(StdSv(ok.message()))));
  if (ok.ok()) Tell("done", "");
  _exit(0);
}

struct Ended {
  std::string written;
  int status = 0;
  bool timed_out = false;
};

Ended Watch(pid_t child, int pipe_end, double timeout_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_seconds);
  constexpr std::size_t most = 1 << 20;  // a library gone wild may write without end
  Ended ended;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poll_end = {pipe_end, POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&poll_end, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      ended.timed_out = true;
      break;
    }
    char buffer[4096];
    const ssize_t n = read(pipe_end, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || ended.written.size() > most) break;
    ended.written.append(buffer, static_cast<std::size_t>(n));
  }
  // The child ends a moment after its end of the pipe, or, when the library closed that, much
  // later.
  while (waitpid(child, &ended.status, WNOHANG) == 0) {
    if (!ended.timed_out && Clock::now() < deadline) {
      usleep(500);
      continue;
    }
    ended.timed_out = true;
    kill(child, SIGKILL);
    usleep(500);
  }
  return ended;
}

absl::StatusOr<std::vector<RegisteredPlugin>> Read(const Ended& ended, double timeout_seconds) {
  std::vector<RegisteredPlugin> plugins;
  std::string phase = "it is loaded";
  bool done = false;
  for (const absl::string_view line : absl::StrSplit(ended.written, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, kField);
    if (fields.size() < 2) continue;
    if (fields[0] == "refused") return absl::FailedPreconditionError(fields[1]);
    if (fields[0] == "ended") {
      return absl::FailedPreconditionError(
          absl::StrCat("ends the program while ", phase, ": ", fields[1]));
    }
    if (fields[0] == "phase") phase = fields[1];
    if (fields[0] == "done") done = true;
    if (fields[0] != "plugin" || fields.size() != 5) continue;
    RegisteredPlugin plugin;
    plugin.kind = fields[1];
    if (!absl::SimpleAtoi(fields[2], &plugin.interface_version)) continue;
    plugin.name = fields[3];
    plugin.description = fields[4];
    plugins.push_back(std::move(plugin));
  }
  if (ended.timed_out) {
    return absl::FailedPreconditionError(absl::StrCat(
        "does not come back within ", ShortNumber(timeout_seconds), " s while ", phase));
  }
  if (WIFSIGNALED(ended.status)) {
    return absl::FailedPreconditionError(absl::StrCat("crashes while ", phase, ": ",
                                                      SignalName(WTERMSIG(ended.status)),
                                                      " (signal ", WTERMSIG(ended.status), ")"));
  }
  if (!done) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ends the program while ", phase, " (exit status ", WEXITSTATUS(ended.status), ")"));
  }
  return plugins;
}

}  // namespace

absl::StatusOr<std::vector<RegisteredPlugin>> ProbeInChild(const std::string& path,
                                                           double timeout_seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("cannot be tried: ", std::strerror(errno)));
  }
  const pid_t child = fork();
  if (child < 0) {
    const int why = errno;
    close(ends[0]);
    close(ends[1]);
    return absl::InternalError(absl::StrCat("cannot be tried: ", std::strerror(why)));
  }
  if (child == 0) {
    close(ends[0]);
    Child(path, ends[1]);
  }
  close(ends[1]);
  const Ended ended = Watch(child, ends[0], timeout_seconds);
  close(ends[0]);
  return Read(ended, timeout_seconds);
}

}  // namespace shardlab
