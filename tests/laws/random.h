#pragma once
// The same numbers on every machine and with every standard library.
//
//   Random random(7);
//   const int degree = random.Of({1, 2, 4, 8});

#include <cstdint>
#include <vector>

namespace shardlab {

class Random final {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {  // splitmix64
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  int Between(int low, int high) {
    return low + static_cast<int>(Next() % static_cast<std::uint64_t>(high - low + 1));
  }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  double Between(double low, double high) { return low + Unit() * (high - low); }
  bool Chance(double share) { return Unit() < share; }
  template <class T>
  T Of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(Next() % all.size())];
  }
  template <class T>
  void Shuffle(std::vector<T>& all) {
    for (std::size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[static_cast<std::size_t>(Next() % i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace shardlab
