#pragma once

#include <cstdint>
#include <functional>

namespace evald {

/// Calls `work(i)` for each i in [0, count) on up to `threads` threads, the calling thread
/// included, and returns when all calls have ended. After the first exception no further call
/// begins, and ParallelFor rethrows that exception.
void ParallelFor(int64_t count, int threads, const std::function<void(int64_t)>& work);

}  // namespace evald
