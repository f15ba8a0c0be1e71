#pragma once

#include "bench/bench.h"

namespace evald::bench {

/// How many copies of a checkpoint's weights four CPU workers hold together: the sum over them of
/// what of the staged files is mapped (PSS: a page that n share counts 1/n for each), and of the
/// anonymous memory that they have beyond what the same run with the small example checkpoint
/// takes. One sequence at a time and few keys and values a token, since these are not weights.
/// {"copies", "weight_bytes", "mapped_bytes", "anonymous_bytes", "workers"}, or {"skipped": why}.
Json MeasureWeightsMemory(const Options& options);

}  // namespace evald::bench
