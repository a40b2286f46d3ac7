#include "laws/allocation_counter.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local bool counting = false;
thread_local long counted = 0;

void* Try(std::size_t bytes, std::size_t alignment) {
  if (counting) ++counted;
  void* memory = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    memory = std::malloc(bytes == 0 ? 1 : bytes);
  } else if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) {
    memory = nullptr;
  }
  return memory;
}

void* Allocate(std::size_t bytes, std::size_t alignment) {
  void* const memory = Try(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Every form that the standard library calls: a sanitizer minds a form of its own beside these.
void* operator new(std::size_t bytes) { return Allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return Try(bytes, 0); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return Try(bytes, 0); }
void* operator new[](std::size_t bytes) { return Allocate(bytes, 0); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace shardlab {

AllocationCounter::AllocationCounter() {
  counted = 0;
  counting = true;
}
AllocationCounter::~AllocationCounter() { counting = false; }
long AllocationCounter::count() const { return counted; }

}  // namespace shardlab
