#pragma once

#include <cstdint>
#include <functional>

namespace evald {

/// Calls `work(i)` for each i in [0, count) from up to `threads` threads, this one among them, and
/// comes back when all are done. The first exception ends it (what has begun is finished) and is
/// rethrown.
void ParallelFor(int64_t count, int threads, const std::function<void(int64_t)>& work);

}  // namespace evald
