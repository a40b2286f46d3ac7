#include "io/search_orders.h"

#include <utility>

#include "core/short_order.h"

namespace shardlab {

const std::string& SearchOrders::Refusal(const Schedule& schedule, int index,
                                         const ScheduleShape& shape) {
  const Key key(index, shape.ranks, shape.chunks, shape.micro_batches);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = refusals_.find(key);
  if (found != refusals_.end()) return found->second;
  return refusals_.emplace(key, schedule.Refusal(shape)).first->second;
}

SearchOrders::Pointer SearchOrders::Of(const Schedule& schedule, int index,
                                       const ScheduleShape& shape) {
  const Key key(index, shape.ranks, shape.chunks, shape.micro_batches);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = orders_.find(key);
    if (found != orders_.end()) return found->second;
  }
  absl::StatusOr<CompiledOrder> compiled = CompileShortOrder(schedule, shape);
  auto made = std::make_shared<KnownOrder>();
  std::size_t bytes = sizeof(KnownOrder);
  if (compiled.ok()) {
    made->order = *std::move(compiled);
    made->order.works = {};
    made->order.events.shrink_to_fit();
    bytes += made->order.events.size() * sizeof(CompiledOrder::Event);
  } else {
    made->code = "schedule.order";
    made->refusal = std::string(compiled.status().message());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes_ + bytes > kMostBytes) {
    orders_.clear();
    bytes_ = 0;
  }
  bytes_ += bytes;
  return orders_.emplace(key, std::move(made)).first->second;
}

}  // namespace shardlab
