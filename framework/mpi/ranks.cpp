#include "mpi/ranks.h"

#include <mpi.h>

#include <algorithm>
#include <limits>
#include <thread>

namespace shardlab {
namespace {

constexpr int kQuestion = 1, kAnswer = 2, kOver = 3;

// A message is there: its length, source and tag.
struct Message {
  int size = 0, source = 0, tag = 0;
};
bool Arrived(Message* message) {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
  if (there == 0) return false;
  MPI_Get_count(&status, MPI_BYTE, &message->size);
  message->source = status.MPI_SOURCE;
  message->tag = status.MPI_TAG;
  return true;
}

std::string Receive(const Message& message) {
  std::string bytes(static_cast<std::size_t>(message.size), '\0');
  MPI_Recv(bytes.data(), message.size, MPI_BYTE, message.source, message.tag, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  return bytes;
}

void Send(const std::string& bytes, int rank, int tag) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw WorkerFailure("a message is larger than MPI takes");
  MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD);
}

}  // namespace

std::chrono::microseconds Patience::Next() {
  const std::chrono::microseconds now = next_;
  next_ = std::min(2 * next_, kLongest);
  return now;
}

RankZero::RankZero(int ranks)
    : workers_(ranks - 1),
      slots_(static_cast<std::size_t>(2 * workers_)),
      waiting_(static_cast<std::size_t>(workers_)) {}

std::string RankZero::Ask(int slot, const std::string& question) {
  std::unique_lock<std::mutex> lock(mutex_);
  Slot& own = slots_.at(static_cast<std::size_t>(slot));
  own = {question, "", false};
  unsent_.push_back(slot);
  something_.notify_one();
  answered_.wait(lock, [&] { return own.answered; });
  return std::move(own.answer);
}

void RankZero::Finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  finished_ = true;
  something_.notify_one();
}

bool RankZero::SendOne() {
  std::string question;
  int worker = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (unsent_.empty()) return false;
    const int slot = unsent_.front();
    unsent_.pop_front();
    worker = slot % workers_;
    waiting_[static_cast<std::size_t>(worker)].push_back(slot);
    question = std::move(slots_[static_cast<std::size_t>(slot)].question);
  }
  Send(question, worker + 1, kQuestion);
  return true;
}

bool RankZero::ReceiveOne() {
  Message message;
  if (!Arrived(&message)) return false;
  std::string answer = Receive(message);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::deque<int>& waiting = waiting_[static_cast<std::size_t>(message.source - 1)];
  if (waiting.empty()) return true;  // nobody asked
  Slot& slot = slots_[static_cast<std::size_t>(waiting.front())];
  waiting.pop_front();
  slot.answer = std::move(answer);
  slot.answered = true;
  answered_.notify_all();
  return true;
}

void RankZero::Carry() {
  Patience patience;
  while (true) {
    const bool sent = SendOne(), received = ReceiveOne();
    if (sent || received) {
      patience.Reset();
      continue;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    if (finished_) break;
    something_.wait_for(lock, patience.Next(), [&] { return finished_ || !unsent_.empty(); });
  }
  for (int worker = 0; worker < workers_; ++worker) Send("", worker + 1, kOver);
}

bool OtherRank::Next(std::string* question) {
  if (over_) return false;
  Patience patience;
  Message message;
  while (!Arrived(&message)) std::this_thread::sleep_for(patience.Next());
  *question = Receive(message);
  over_ = message.tag == kOver;
  return !over_;
}

void OtherRank::Answer(const std::string& answer) { Send(answer, 0, kAnswer); }

}  // namespace shardlab
