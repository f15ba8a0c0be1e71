#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace evald::native {

/// A cache line, and the widest vector: a load across two lines costs two loads.
inline constexpr std::align_val_t kAlignment{64};

/// Memory of this size or more begins at a multiple of it, and the kernel is asked for large pages:
/// a matrix's rows lie in more small pages than the processor has translations for (TLB).
inline constexpr size_t kLargePage = size_t{2} << 20;

/// Frees with AlignedDelete. Throws std::bad_alloc.
inline void* AlignedNew(size_t bytes) {
  if (bytes < kLargePage) return ::operator new(bytes, kAlignment);
  void* p = ::operator new(bytes, std::align_val_t{kLargePage});
  ::madvise(p, bytes / kLargePage * kLargePage,
            MADV_HUGEPAGE);  // the kernel may refuse
  return p;
}

inline void AlignedDelete(void* p, size_t bytes) {
  if (bytes < kLargePage) return ::operator delete(p, kAlignment);
  ::operator delete(p, std::align_val_t{kLargePage});
}

template <typename T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t n) { return static_cast<T*>(AlignedNew(n * sizeof(T))); }
  void deallocate(T* p, size_t n) { AlignedDelete(p, n * sizeof(T)); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

/// Floats that begin at a cache line.
using Floats = std::vector<float, AlignedAllocator<float>>;

}  // namespace evald::native
