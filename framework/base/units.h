#pragma once
// Units as types: a number of bytes cannot be added to a number of seconds. All are doubles
// underneath, because counts of bytes exceed what a float or a careless product of ints can hold
// and because the classroom accounting divides without rounding. GB = 10^9 bytes and GiB = 2^30
// bytes, never mixed.
//
//   Bytes sent = 2.0 * tensor * (n - 1) / n;
//   Seconds t = sent / BytesPerSecond(450e9);

#include <compare>

namespace shardlab {

template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}
  constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(Quantity a, double b) { return Quantity(a.value_ * b); }
  friend constexpr Quantity operator*(double a, Quantity b) { return Quantity(a * b.value_); }
  friend constexpr Quantity operator/(Quantity a, double b) { return Quantity(a.value_ / b); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr bool operator==(Quantity, Quantity) = default;

 private:
  double value_ = 0;
};

using Bytes = Quantity<struct BytesTag>;
using Seconds = Quantity<struct SecondsTag>;
using Flops = Quantity<struct FlopsTag>;  // floating-point operations, a count and not a rate
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;

constexpr Seconds operator/(Bytes a, BytesPerSecond b) { return Seconds(a.value() / b.value()); }
constexpr Seconds operator/(Flops a, FlopsPerSecond b) { return Seconds(a.value() / b.value()); }
constexpr BytesPerSecond operator/(Bytes a, Seconds b) {
  return BytesPerSecond(a.value() / b.value());
}
constexpr FlopsPerSecond operator/(Flops a, Seconds b) {
  return FlopsPerSecond(a.value() / b.value());
}

}  // namespace shardlab
