#pragma once
// Counts what operator new is asked for, by this program and by the libraries that it has loaded.
//
//   AllocationCounter counter;
//   Evaluate(...);
//   EXPECT_EQ(counter.count(), 0);

namespace shardlab {

class AllocationCounter final {
 public:
  AllocationCounter();  // starts to count, on this thread
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;
  long count() const;
};

}  // namespace shardlab
