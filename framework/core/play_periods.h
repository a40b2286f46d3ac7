#pragma once
// Playing a compiled order whose middle repeats: once the state has repeated with every event later
// by the same time, the rest of the periods is skipped, those that are not among the events too.
// Where it has not repeated and the events are at their end, the last period is played again.
//
//   PlayPeriods(order, ends, play, remember, later);
//
// play(from, to): sets `ends` of these events from those before them. remember(): a period begins
// here. later(seconds, periods): so many periods are skipped, which take so long.

#include <algorithm>

#include "core/order.h"

namespace shardlab {

template <class Play, class Remember, class Later>
void PlayPeriods(const CompiledOrder& order, double* ends, Play play, Remember remember,
                 Later later) {
  const CompiledOrder::Period& period = order.period;
  std::size_t at = 0;
  if (period.length > 0) {
    const std::size_t length = period.length, reach = period.reach, window = reach + length;
    // The window of `reach` events before `at` and the one a period earlier must lie in the
    // periodic stretch.
    play(at, period.begin + reach);
    remember();
    at = period.begin + window;
    play(period.begin + reach, at);
    const std::size_t stored = (period.end - at) / length, last = at + stored * length;
    for (std::size_t left = stored + period.more; left > 0; --left) {
      const double shift = ends[at - 1] - ends[at - 1 - length];
      const double allowed = 1e-14 * ends[at - 1];
      bool repeats = true;
      for (std::size_t i = at - reach; i < at && repeats; ++i) {
        const double off = ends[i] - ends[i - length] - shift;
        repeats = off <= allowed && -off <= allowed;
      }
      if (repeats) {
        const double periods = static_cast<double>(left), more = periods * shift;
        for (std::size_t i = 1; i <= reach; ++i) ends[last - i] = ends[at - i] + more;
        later(more, periods);
        at = last;
        break;
      }
      if (at == last) {
        std::copy(ends + at - window, ends + at, ends + at - window - length);
        at -= length;
      }
      remember();
      play(at, at + length);
      at += length;
    }
  }
  play(at, order.events.size());
}

}  // namespace shardlab
