#pragma once

#include <cstdint>
#include <vector>

#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda {

/// Pages of one size, many to an allocation, since taking device memory is slow. Returned pages are
/// used again; memory is kept until the end. For one thread at a time.
class PageSlabs {
 public:
  explicit PageSlabs(uint64_t page_bytes) : page_bytes_(page_bytes) {}

  /// A page whose content is finite. New memory is filled on `stream`. Throws
  /// DeviceError(kOutOfMemory) if there is not even memory for one page.
  char* Take(const Stream& stream);
  void GiveBack(char* page) { free_.push_back(page); }
  uint64_t bytes() const;

 private:
  void AddSlab(const Stream& stream);

  uint64_t page_bytes_;
  std::vector<Memory> slabs_;
  std::vector<char*> free_;
};

}  // namespace evald::native::cuda
