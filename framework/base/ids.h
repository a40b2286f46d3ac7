#pragma once
// Typed indices: a TensorId is not an OpId, and neither is a number. An id is an index into the
// table that owns the thing; it stays valid because tables only grow.
//
//   using TensorId = Id<struct TensorTag>;
//   TensorId id(3);
//   program.tensor(id).name;

#include <cstdint>
#include <functional>
#include <limits>

namespace shardlab {

template <class Tag>
class Id {
 public:
  using Value = std::uint16_t;
  static constexpr Value kNoValue = std::numeric_limits<Value>::max();

  constexpr Id() = default;  // names nothing: valid() is false
  constexpr explicit Id(std::size_t value) : value_(static_cast<Value>(value)) {}

  constexpr bool valid() const { return value_ != kNoValue; }
  constexpr Value value() const { return value_; }
  constexpr std::size_t index() const { return value_; }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Value value_ = kNoValue;
};

}  // namespace shardlab

template <class Tag>
struct std::hash<shardlab::Id<Tag>> {
  std::size_t operator()(shardlab::Id<Tag> id) const { return id.value(); }
};
