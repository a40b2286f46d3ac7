#include "app/progress.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

constexpr std::chrono::milliseconds kBetween(100);
constexpr std::size_t kBar = 30;

}  // namespace

Progress::Progress(Streams streams, std::int64_t total, std::int64_t before)
    : streams_(streams), total_(total), before_(before) {}

Progress::~Progress() {
  if (shown_) streams_.err << "\r\x1b[K" << std::flush;
}

void Progress::Update(std::int64_t done) {
  if (!streams_.terminal.progress || total_ <= 0) return;
  const Clock::time_point now = Clock::now();
  if (now - last_ < kBetween) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done - before_) / seconds;
  const std::size_t full = kBar * static_cast<std::size_t>(done) / static_cast<std::size_t>(total_);
  std::string line = absl::StrCat("\r[", std::string(full, '#'), std::string(kBar - full, '.'),
                                  "] ", WithThousands(done), " of ", WithThousands(total_));
  if (rate > 0) {
    absl::StrAppend(&line, "  ", Significant(rate, 3), "/s  ",
                    FormatSeconds(static_cast<double>(total_ - done) / rate), " left");
  }
  streams_.err << line << "\x1b[K" << std::flush;
}

}  // namespace shardlab
