#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/native/page_positions.h"

namespace evald::native {

/// Keys and values of kPagePositions positions, of all layers and heads, in their device's memory.
/// Only the device looks inside.
struct Page;

/// The source of pages: a device. One thread at a time.
class PageMemory {
 public:
  virtual ~PageMemory() = default;
  virtual uint64_t page_bytes() const = 0;
  /// A page with unspecified finite content. Throws if there is no memory.
  virtual Page* NewPage() = 0;
  virtual void DeletePage(Page* page) = 0;
  virtual void CopyPage(const Page* from, Page* to) = 0;
};

/// One page, shared by all sequences that have these positions in common. A page that several
/// sequences hold is read-only.
using PageRef = std::shared_ptr<Page>;

/// Pages up to a budget. Memory is taken at the first use of a page and kept for later ones. One
/// thread at a time. `memory` must outlive the cache, and the cache its pages.
class KvCache {
 public:
  KvCache(PageMemory* memory, uint64_t budget_bytes);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  /// Must not be called if no page is free.
  PageRef Allocate();
  /// A new page with the same content. Must not be called if no page is free.
  PageRef Copy(const PageRef& page);
  /// Takes the memory of all pages now, so that it cannot run out later. Passes on exceptions of
  /// NewPage; the capacity is then the number of pages obtained.
  void TakeAll();
  int64_t capacity() const { return capacity_; }  ///< pages
  int64_t in_use() const { return in_use_; }
  uint64_t page_bytes() const { return memory_->page_bytes(); }

 private:
  PageMemory* memory_;
  int64_t capacity_ = 0;
  int64_t in_use_ = 0;
  std::vector<Page*> free_;
};

/// The number of pages for `positions` positions.
inline int64_t PagesFor(int64_t positions) {
  return (positions + kPagePositions - 1) / kPagePositions;
}

}  // namespace evald::native
