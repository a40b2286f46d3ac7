#pragma once
// Orders that a search has compiled, for all its threads. Those of large shapes take megabytes:
// when they come to more than a limit the search forgets them.
//
//   SearchOrders orders;
//   SearchOrders::Pointer order = orders.Of(schedule, index, {ranks, chunks, micro_batches},
//   nullptr);

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
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
  // `outline`: what Outline gave, or null.
  Pointer Of(const Schedule& schedule, int index, const ScheduleShape& shape,
             const CompiledOrder* outline);
  // The same without what only playing needs; see OutlineOrder.
  Pointer Outline(const Schedule& schedule, int index, const ScheduleShape& shape);
  // Refusals that no thread has at present, and back with them.
  std::unique_ptr<Refusals> TakeRefusals();
  void GiveBack(std::unique_ptr<Refusals> refusals);

 private:
  using Key = std::tuple<int, int, int, int>;
  static constexpr std::size_t kMostBytes = std::size_t{96} << 20;
  using Orders = std::map<Key, Pointer>;
  template <class Make>
  Pointer Known(Orders* orders, const Key& key, Make make);
  Orders orders_, outlines_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Refusals>> refusals_;
  std::size_t bytes_ = 0;
};

}  // namespace shardlab
