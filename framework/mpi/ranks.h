#pragma once
// Questions and answers between the ranks of an MPI program: rank 0 asks, all others answer. MPI is
// called by one thread of each process, the one that began it.
//
//   RankZero zero(ranks);                      // on rank 0
//   std::thread command([&] { ...; zero.Finish(); });   // calls zero.Ask
//   zero.Carry();                              // until Finish
//
//   OtherRank other;                           // elsewhere
//   while (other.Next(&question)) other.Answer(...);
//
// Whoever waits sleeps between looks, up to a millisecond: waiting inside of MPI takes a whole
// core.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "app/workers.h"

namespace shardlab {

// Longer the longer nothing happens.
class Patience final {
 public:
  std::chrono::microseconds Next();
  void Reset() { next_ = kShortest; }

 private:
  static constexpr std::chrono::microseconds kShortest{20}, kLongest{1000};
  std::chrono::microseconds next_ = kShortest;
};

class RankZero final : public Workers {
 public:
  // `ranks`: of the program, at least 2.
  explicit RankZero(int ranks);

  // Two for each other rank: while it works on one question it has the next.
  int slots() const override { return 2 * workers_; }
  std::string Ask(int slot, const std::string& question) override;

  // Brings questions and answers until Finish was called; then tells all ranks that it is over.
  void Carry();
  void Finish();

 private:
  struct Slot {
    std::string question, answer;
    bool answered = false;
  };
  bool SendOne();
  bool ReceiveOne();

  int workers_;
  std::mutex mutex_;
  std::condition_variable answered_, something_;
  std::vector<Slot> slots_;
  std::deque<int> unsent_;                // slots
  std::vector<std::deque<int>> waiting_;  // [worker] slots, in the order of their questions
  bool finished_ = false;
};

class OtherRank final : public Questions {
 public:
  bool Next(std::string* question) override;
  void Answer(const std::string& answer) override;

 private:
  bool over_ = false;
};

}  // namespace shardlab
