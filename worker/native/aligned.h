#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace evald::native {

/// A cache line, and the widest vector: a load across two lines costs two.
inline constexpr std::align_val_t kAlignment{64};

template <typename T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlignment); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

/// Floats that begin at a cache line.
using Floats = std::vector<float, AlignedAllocator<float>>;

}  // namespace evald::native
