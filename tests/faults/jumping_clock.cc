// Preloaded by tests: a wall clock that is set again and again. CLOCK_REALTIME jumps four times a
// second, days forwards and backwards. With EVALD_CLOCK_AHEAD=SECONDS it is constantly ahead, or
// behind if the number is negative. CLOCK_MONOTONIC goes on normally.
#include <sys/time.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>

#include "tests/faults/layer.h"

namespace {

int64_t JumpSeconds() {
  if (const char* ahead = std::getenv("EVALD_CLOCK_AHEAD")) return std::atoll(ahead);
  constexpr int64_t kJumps[] = {0, 86400 * 9, -3600 * 5, 1, -86400 * 400, 3600};
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  const int64_t quarters = now.tv_sec * 4 + now.tv_nsec / 250'000'000;
  return kJumps[quarters % (sizeof kJumps / sizeof kJumps[0])];
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += JumpSeconds();
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
