#pragma once
// Orders that a search has compiled, for all its threads. Those of large shapes take megabytes:
// when they come to more than a limit the search forgets them.
//
//   SearchOrders orders;
//   SearchOrders::Pointer outline = orders.Outline({&schedule, index, shape});
//   SearchOrders::Pointer order = orders.Of({&schedule, index, shape}, &outline->order);

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/order.h"

namespace shardlab {

struct KnownOrder {
  std::string code, refusal;  // empty: there is an order
  CompiledOrder order;        // without its works
};

// Of one thread: why schedules refuse shapes. Asked for each plan, so no lock is taken.
class Refusals {
 public:
  // Empty when the schedule does not refuse it; stays where it is. `index` tells schedules apart.
  const std::string& Of(const Schedule& schedule, int index, const ScheduleShape& shape);

 private:
  std::map<std::tuple<int, int, int, int>, std::string> known_;
};

class SearchOrders {
 public:
  using Pointer = std::shared_ptr<const KnownOrder>;
  // `index` tells schedules apart.
  struct Asked {
    const Schedule* schedule = nullptr;
    int index = 0;
    ScheduleShape shape;
  };
  using Key = std::tuple<int, int, int, int>;
  static Key KeyOf(const Asked& asked) {
    return {asked.index, asked.shape.ranks, asked.shape.chunks, asked.shape.micro_batches};
  }
  // `outline`: what Outline gave, or null.
  Pointer Of(const Asked& asked, const CompiledOrder* outline);
  // The same without what only playing needs; see OutlineOrder.
  Pointer Outline(const Asked& asked);

  // Outlines that a group is about to ask for, the first first, until they are withdrawn: groups
  // wait for one another, and ask for the same outlines at the same time. Who waits makes some.
  int Announce(std::vector<Asked> outlines);
  void Withdraw(int announced);
  // Makes one that has been announced; false: there is none that nobody makes already.
  bool Help();

  // Refusals that no thread has at present, and back with them.
  std::unique_ptr<Refusals> TakeRefusals();
  void GiveBack(std::unique_ptr<Refusals> refusals);

 private:
  static constexpr std::size_t kMostBytes = std::size_t{96} << 20;
  struct Orders {
    std::map<Key, Pointer> known;
    std::set<Key> making;  // by some thread
  };
  class Making;
  struct Announced {
    std::vector<Asked> outlines;
    std::size_t next = 0;  // those before it are known or being made
  };
  // Of a key that is in `making`.
  template <class Compile>
  Pointer Make(Orders* orders, const Key& key, Compile compile);
  template <class Compile>
  Pointer Known(Orders* orders, const Key& key, Compile compile);
  std::optional<Asked> TakeAnnounced();

  std::mutex mutex_;
  std::condition_variable made_;
  Orders orders_, outlines_;
  std::map<int, Announced> announced_;
  int announcements_ = 0;
  std::vector<std::unique_ptr<Refusals>> refusals_;
  std::size_t bytes_ = 0;
};

}  // namespace shardlab
