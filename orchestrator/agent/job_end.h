#pragma once

#include <algorithm>

namespace evald {

/// When a job of Slurm ends, by this host's clock. `start` and `end` are the job's by Slurm's
/// clock, from which this host's may differ; `now` is this host's. Seconds since 1970; 0 stands for
/// a time that is not known. A job that runs has begun and is not over, so a clock that says
/// otherwise is wrong, and the job is taken to have begun just now.
inline double EndByOwnClock(double start, double end, double now) {
  const bool over = now >= end;
  if (start <= 0 || start >= end) return over ? 0 : end;
  const double whole = now + (end - start);
  return over ? whole : std::min(end, whole);
}

}  // namespace evald
