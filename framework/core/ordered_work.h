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

// `consume` runs on one thread at a time: whichever made what comes next, so that nobody has to be
// woken for it. What either throws is thrown here, once all have ended.
template <class Work, class Consume>
void InOrder(std::int64_t pieces, int jobs, Work&& work, Consume&& consume) {
  if (jobs <= 1 || pieces <= 1) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) consume(piece, work(piece, 0));
    return;
  }
  using Result = decltype(work(std::int64_t{0}, 0));
  const std::int64_t ahead = 4 * static_cast<std::int64_t>(jobs);  // results that may wait
  std::mutex mutex;
  std::condition_variable taken;
  std::map<std::int64_t, Result> results;
  std::int64_t next = 0, wanted = 0;
  bool stop = false, consuming = false;
  std::exception_ptr failure;
  // Takes the next piece; false: there is none.
  const auto take = [&](std::int64_t* piece) {
    std::unique_lock<std::mutex> lock(mutex);
    taken.wait(lock, [&] { return stop || next >= pieces || next < wanted + ahead; });
    if (stop || next >= pieces) return false;
    *piece = next++;
    return true;
  };
  const auto deliver = [&](std::int64_t piece, Result result) {
    std::unique_lock<std::mutex> lock(mutex);
    results.emplace(piece, std::move(result));
    if (consuming) return;  // who does so looks again
    consuming = true;
    while (!stop && !results.empty() && results.begin()->first == wanted) {
      auto node = results.extract(results.begin());
      ++wanted;
      taken.notify_all();
      lock.unlock();
      consume(node.key(), std::move(node.mapped()));
      lock.lock();
    }
    consuming = false;
  };
  const auto run = [&](int thread) {
    try {
      std::int64_t piece = 0;
      while (take(&piece)) deliver(piece, work(piece, thread));
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failure) failure = std::current_exception();
      stop = true;
      taken.notify_all();
    }
  };
  std::vector<std::thread> threads;
  const auto count = static_cast<int>(std::min<std::int64_t>(jobs, pieces));
  threads.reserve(static_cast<std::size_t>(count));
  for (int thread = 0; thread < count; ++thread) threads.emplace_back(run, thread);
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace shardlab
