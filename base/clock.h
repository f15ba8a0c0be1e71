#pragma once

#include <chrono>
#include <cstdint>

namespace evald {

/// Microseconds of CLOCK_MONOTONIC, which all processes of one host share.
inline int64_t MonotonicMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Seconds since 1970, for people and for files.
inline double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace evald
