#include "worker/native/cuda/page_slabs.h"

#include <algorithm>

namespace evald::native::cuda {
namespace {

constexpr uint64_t kSlabBytesMin = uint64_t{4} << 20;
constexpr uint64_t kSlabBytesMax = uint64_t{256} << 20;
constexpr uint64_t kGrowth =
    8;  // a slab is 1 in so many of all before, as some of it may stay unused

}  // namespace

char* PageSlabs::Take(const Stream& stream) {
  if (free_.empty()) AddSlab(stream);
  char* page = free_.back();
  free_.pop_back();
  return page;
}

uint64_t PageSlabs::bytes() const {
  uint64_t sum = 0;
  for (const Memory& slab : slabs_) sum += slab.bytes();
  return sum;
}

// If memory for a whole slab is not left, takes a smaller slab.
void PageSlabs::AddSlab(const Stream& stream) {
  uint64_t pages = std::clamp(bytes() / kGrowth, kSlabBytesMin, kSlabBytesMax) / page_bytes_;
  pages = std::max<uint64_t>(pages, 1);
  Memory slab;
  while (slab.data() == nullptr) {
    try {
      slab = Memory(MemoryKind::kDevice, pages * page_bytes_);
    } catch (const DeviceError& e) {
      if (e.fault() != DeviceFault::kOutOfMemory || pages == 1) throw;
      ClearError();
      pages /= 2;
    }
  }
  FillBytes(slab.data(), 0, slab.bytes(), stream);
  free_.reserve(free_.size() + (slab.bytes() + bytes()) / page_bytes_);  // giving back cannot throw
  for (uint64_t i = pages; i-- > 0;) free_.push_back(slab.data() + i * page_bytes_);
  slabs_.push_back(std::move(slab));
}

}  // namespace evald::native::cuda
