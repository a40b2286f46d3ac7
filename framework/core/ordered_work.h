#pragma once
// Work in numbered pieces on several threads, whose results are taken in order: what comes out is
// the same for any number of threads.
//
//   InOrder(pieces, jobs, [&](std::int64_t piece, int thread) { return Compute(piece); },
//           [&](std::int64_t piece, Result result) { Write(result); });

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace shardlab {

// `consume` runs on the calling thread. What either throws is thrown here, once all have ended.
template <class Work, class Consume>
void InOrder(std::int64_t pieces, int jobs, Work&& work, Consume&& consume) {
  if (jobs <= 1 || pieces <= 1) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) consume(piece, work(piece, 0));
    return;
  }
  using Result = decltype(work(std::int64_t{0}, 0));
  const std::int64_t ahead = 4 * static_cast<std::int64_t>(jobs);  // results that may wait
  std::mutex mutex;
  std::condition_variable made, taken;
  std::map<std::int64_t, Result> results;
  std::int64_t next = 0, wanted = 0;
  bool stop = false;
  std::exception_ptr failure;
  const auto fail = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!failure) failure = std::current_exception();
    stop = true;
    made.notify_all();
    taken.notify_all();
  };
  const auto run = [&](int thread) {
    while (true) {
      std::int64_t piece = 0;
      {
        std::unique_lock<std::mutex> lock(mutex);
        taken.wait(lock, [&] { return stop || next >= pieces || next < wanted + ahead; });
        if (stop || next >= pieces) return;
        piece = next++;
      }
      try {
        Result result = work(piece, thread);
        const std::lock_guard<std::mutex> lock(mutex);
        results.emplace(piece, std::move(result));
        made.notify_one();
      } catch (...) {
        fail();
        return;
      }
    }
  };
  std::vector<std::thread> threads;
  const auto count = static_cast<int>(std::min<std::int64_t>(jobs, pieces));
  threads.reserve(static_cast<std::size_t>(count));
  for (int thread = 0; thread < count; ++thread) threads.emplace_back(run, thread);
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    std::unique_lock<std::mutex> lock(mutex);
    made.wait(lock, [&] { return stop || results.count(piece) > 0; });
    if (stop) break;
    auto node = results.extract(piece);
    wanted = piece + 1;
    taken.notify_all();
    lock.unlock();
    try {
      consume(piece, std::move(node.mapped()));
    } catch (...) {
      fail();
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace shardlab
