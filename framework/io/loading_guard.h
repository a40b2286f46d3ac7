#pragma once
// While a shared library is loaded its static initialisers run, and what they throw or break cannot
// be caught: it would have to go through the dynamic linker's C frames. For that time this guard
// puts one clear line in the place of a bare "Aborted" (the library, what happened, how to look
// closer), exit status 1.
//
//   { const LoadingGuard guard(path);  dlopen(...); }
//
// One at a time, on the thread that loads; plugins are loaded before any other thread is started.

#include <array>
#include <csignal>
#include <exception>
#include <string>

namespace shardlab {

class LoadingGuard final {
 public:
  explicit LoadingGuard(const std::string& path);
  ~LoadingGuard();
  LoadingGuard(const LoadingGuard&) = delete;
  LoadingGuard& operator=(const LoadingGuard&) = delete;

  static constexpr std::array<int, 5> kSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

 private:
  std::terminate_handler terminate_;
  std::array<struct sigaction, kSignals.size()> signals_;
};

// "a segmentation fault", "a bus error", ...; safe in a signal handler.
const char* SignalName(int signal);

}  // namespace shardlab
