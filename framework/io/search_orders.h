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

#include "core/order.h"

namespace shardlab {

struct KnownOrder {
  std::string code, refusal;  // empty: there is an order
  CompiledOrder order;        // without its works
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
  // Why the schedule refuses a shape; empty when it does not. Nothing is compiled.
  const std::string& Refusal(const Schedule& schedule, int index, const ScheduleShape& shape);

 private:
  using Key = std::tuple<int, int, int, int>;
  static constexpr std::size_t kMostBytes = std::size_t{96} << 20;
  using Orders = std::map<Key, Pointer>;
  template <class Make>
  Pointer Known(Orders* orders, const Key& key, Make make);
  Orders orders_, outlines_;
  std::mutex mutex_;
  std::map<Key, std::string> refusals_;
  std::size_t bytes_ = 0;
};

}  // namespace shardlab
