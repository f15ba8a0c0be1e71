#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "base/memory_limits.h"

namespace evald {

/// While it lives, this process may take only `bytes` more memory than it has (RLIMIT_DATA):
/// allocations beyond fail with std::bad_alloc. Does nothing in builds with sanitizers.
class LittleMemory {
 public:
  explicit LittleMemory(uint64_t bytes) {
    if (!LimitsOwnMemory()) return;
    EXPECT_EQ(::getrlimit(RLIMIT_DATA, &before_), 0);
    uint64_t pages = 0;  // the sixth number: data and stack
    std::ifstream statm("/proc/self/statm");
    for (int i = 0; i < 6; ++i) statm >> pages;
    EXPECT_GT(pages, 0u);
    rlimit limit = before_;
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, pages * page + bytes);
    EXPECT_EQ(::setrlimit(RLIMIT_DATA, &limit), 0);
  }
  ~LittleMemory() {
    if (LimitsOwnMemory()) ::setrlimit(RLIMIT_DATA, &before_);
  }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

}  // namespace evald
