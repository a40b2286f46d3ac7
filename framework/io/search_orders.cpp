#include "io/search_orders.h"

#include <utility>

#include "core/short_order.h"

namespace shardlab {

const std::string& Refusals::Of(const Schedule& schedule, int index, const ScheduleShape& shape) {
  const std::tuple key(index, shape.ranks, shape.chunks, shape.micro_batches);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_.emplace(key, schedule.Refusal(shape)).first->second;
}

std::unique_ptr<Refusals> SearchOrders::TakeRefusals() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (refusals_.empty()) return std::make_unique<Refusals>();
  std::unique_ptr<Refusals> taken = std::move(refusals_.back());
  refusals_.pop_back();
  return taken;
}

void SearchOrders::GiveBack(std::unique_ptr<Refusals> refusals) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refusals_.push_back(std::move(refusals));
}

template <class Make>
SearchOrders::Pointer SearchOrders::Known(Orders* orders, const Key& key, Make make) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = orders->find(key);
    if (found != orders->end()) return found->second;
  }
  absl::StatusOr<CompiledOrder> compiled = make();
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
    outlines_.clear();
    bytes_ = 0;
  }
  bytes_ += bytes;
  return orders->emplace(key, std::move(made)).first->second;
}

SearchOrders::Pointer SearchOrders::Of(const Schedule& schedule, int index,
                                       const ScheduleShape& shape, const CompiledOrder* outline) {
  return Known(&orders_, Key(index, shape.ranks, shape.chunks, shape.micro_batches),
               [&] { return CompileShortOrder(schedule, shape, outline); });
}

SearchOrders::Pointer SearchOrders::Outline(const Schedule& schedule, int index,
                                            const ScheduleShape& shape) {
  return Known(&outlines_, Key(index, shape.ranks, shape.chunks, shape.micro_batches),
               [&] { return OutlineOrder(schedule, shape); });
}

}  // namespace shardlab
