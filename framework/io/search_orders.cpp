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

// Ends with the making of an order, be it by an exception.
class SearchOrders::Making {
 public:
  Making(SearchOrders* of, Orders* orders, const Key& key)
      : of_(*of), orders_(*orders), key_(key) {}
  ~Making() {
    const std::lock_guard<std::mutex> lock(of_.mutex_);
    orders_.making.erase(key_);
    of_.made_.notify_all();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  SearchOrders& of_;
  Orders& orders_;
  const Key key_;
};

template <class Compile>
SearchOrders::Pointer SearchOrders::Make(Orders* orders, const Key& key, Compile compile) {
  const Making making(this, orders, key);
  absl::StatusOr<CompiledOrder> compiled = compile();
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
    orders_.known.clear();
    outlines_.known.clear();
    bytes_ = 0;
  }
  bytes_ += bytes;
  orders->known.emplace(key, made);
  return made;
}

template <class Compile>
SearchOrders::Pointer SearchOrders::Known(Orders* orders, const Key& key, Compile compile) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    const auto found = orders->known.find(key);
    if (found != orders->known.end()) return found->second;
    if (orders->making.insert(key).second) break;
    lock.unlock();
    const bool helped = Help();
    lock.lock();
    if (!helped) made_.wait(lock, [&] { return orders->making.count(key) == 0; });
  }
  lock.unlock();
  return Make(orders, key, compile);
}

SearchOrders::Pointer SearchOrders::Of(const Asked& asked, const CompiledOrder* outline) {
  return Known(&orders_, KeyOf(asked),
               [&] { return CompileShortOrder(*asked.schedule, asked.shape, outline); });
}

SearchOrders::Pointer SearchOrders::Outline(const Asked& asked) {
  return Known(&outlines_, KeyOf(asked),
               [&] { return OutlineOrder(*asked.schedule, asked.shape); });
}

int SearchOrders::Announce(std::vector<Asked> outlines) {
  const std::lock_guard<std::mutex> lock(mutex_);
  announced_[announcements_] = {std::move(outlines), 0};
  return announcements_++;
}

void SearchOrders::Withdraw(int announced) {
  const std::lock_guard<std::mutex> lock(mutex_);
  announced_.erase(announced);
}

std::optional<SearchOrders::Asked> SearchOrders::TakeAnnounced() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [number, of] : announced_) {
    while (of.next < of.outlines.size()) {
      const Asked& asked = of.outlines[of.next++];
      const Key key = KeyOf(asked);
      if (outlines_.known.count(key) == 0 && outlines_.making.insert(key).second) return asked;
    }
  }
  return std::nullopt;
}

bool SearchOrders::Help() {
  const std::optional<Asked> asked = TakeAnnounced();
  if (!asked) return false;
  Make(&outlines_, KeyOf(*asked), [&] { return OutlineOrder(*asked->schedule, asked->shape); });
  return true;
}

}  // namespace shardlab
