#include "worker/native/kv_cache.h"

#include <algorithm>

#include "evald/error.h"

namespace evald::native {

KvCache::KvCache(PageMemory* memory, uint64_t budget_bytes)
    : memory_(memory), capacity_(static_cast<int64_t>(budget_bytes / memory->page_bytes())) {}

KvCache::~KvCache() {
  for (Page* page : free_) memory_->DeletePage(page);
}

PageRef KvCache::Allocate() {
  if (in_use_ >= capacity_) throw Error(ErrorKind::kInternal, "the key-value cache is overdrawn");
  // Reserves now, so that giving back cannot throw.
  const auto needed = static_cast<size_t>(in_use_) + free_.size() + 1;
  if (free_.capacity() < needed) free_.reserve(2 * needed);
  Page* page = nullptr;
  if (free_.empty()) {
    page = memory_->NewPage();
  } else {
    page = free_.back();
    free_.pop_back();
  }
  ++in_use_;
  return PageRef(page, [this](Page* back) {
    --in_use_;
    free_.push_back(back);
  });
}

PageRef KvCache::Copy(const PageRef& page) {
  PageRef copy = Allocate();
  memory_->CopyPage(page.get(), copy.get());
  return copy;
}

void KvCache::TakeAll() {
  const auto taken = [this] { return in_use_ + static_cast<int64_t>(free_.size()); };
  free_.reserve(static_cast<size_t>(std::max<int64_t>(capacity_ - in_use_, 0)));
  try {
    while (taken() < capacity_) free_.push_back(memory_->NewPage());
  } catch (...) {
    capacity_ = taken();
    throw;
  }
}

}  // namespace evald::native
