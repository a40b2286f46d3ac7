#pragma once
// A machine: how much memory, which tiers, and how long one op takes on one device.
//
// Contract: const and thread-safe, no allocation in OpTime; OpTime is never negative and grows with
// flops and bytes; more bandwidth never makes it larger.

#include <vector>

#include "api/plugin.h"
#include "domain/machine.h"

namespace shardlab {

class SHARDLAB_EXPORT Hardware : public Plugin {
 public:
  static constexpr const char* kKind = "hardware";
  static constexpr int kInterfaceVersion = 1;
  ~Hardware() override;
  virtual const Machine& machine() const = 0;
  virtual Seconds OpTime(const OpShape& shape) const noexcept = 0;
  // The same for many ops at once, which evaluating a plan asks for; a machine may do it faster
  // than one by one, with the same results.
  virtual void OpTimes(const OpShape* shapes, std::size_t count, double* seconds) const noexcept;
  // Every constant that OpTime and machine() use, with its source.
  virtual std::vector<Constant> Constants() const = 0;
};

}  // namespace shardlab
