#pragma once
// A bar with rate and time left on standard error, on a terminal only; gone when it is done.
//
//   Progress progress(streams, total);
//   progress.Update(done);

#include <chrono>
#include <cstdint>

#include "app/command_line.h"

namespace shardlab {

class Progress final {
 public:
  // `before`: what was done by an earlier run and says nothing of the rate.
  Progress(Streams streams, std::int64_t total, std::int64_t before = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Update(std::int64_t done);

 private:
  using Clock = std::chrono::steady_clock;
  Streams streams_;
  std::int64_t total_, before_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace shardlab
