#include "io/loading_guard.h"

#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "io/guarded.h"

namespace shardlab {
namespace {

// Built beforehand: a signal handler may not allocate.
std::string& Opening() {
  static auto* const text = new std::string;
  return *text;
}
std::string& Closing() {
  static auto* const text = new std::string;
  return *text;
}

void Say(const char* text, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(STDERR_FILENO, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<std::size_t>(written);
  }
}

void OnSignal(int signal) {
  const char* name = SignalName(signal);
  Say(Opening().data(), Opening().size());
  Say(name, std::strlen(name));
  Say(Closing().data(), Closing().size());
  _exit(1);
}

void OnTerminate() {
  const std::string what =
      std::current_exception() == nullptr ? "it calls std::terminate" : DescribeCurrentException();
  const std::string line = absl::StrCat(Opening(), what, Closing());
  Say(line.data(), line.size());
  _exit(1);
}

}  // namespace

LoadingGuard::LoadingGuard(const std::string& path) {
  Opening() =
      absl::StrCat("shardlab: plugin library ", path, " ends the program while it is loaded: ");
  Closing() = absl::StrCat("; look closer with: shardlab plugins check ", path, "\n");
  terminate_ = std::set_terminate(&OnTerminate);
  struct sigaction action {};
  action.sa_handler = &OnSignal;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &signals_[i]);
}

LoadingGuard::~LoadingGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &signals_[i], nullptr);
  std::set_terminate(terminate_);
}

const char* SignalName(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "a segmentation fault";
    case SIGBUS:
      return "a bus error";
    case SIGILL:
      return "an illegal instruction";
    case SIGFPE:
      return "an arithmetic exception";
    case SIGABRT:
      return "an abort";
    case SIGTRAP:
      return "a trap";
    case SIGSYS:
      return "a bad system call";
    case SIGKILL:
      return "a kill";
    default:
      return "a signal";
  }
}

}  // namespace shardlab
