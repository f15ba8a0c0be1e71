#pragma once

#include "bench/bench.h"

namespace evald::bench {

/// The number of copies of a checkpoint's weights that four CPU workers hold together. It is a sum
/// over the workers of two parts. The first is the mapped part of the staged files (PSS: a page
/// that n workers share counts 1/n for each). The second is the anonymous memory beyond that of the
/// same run with the small example checkpoint. The runs have one sequence at a time and few keys
/// and values a token, since these are not weights. {"copies", "weight_bytes", "mapped_bytes",
/// "anonymous_bytes", "workers"}, or {"skipped": why}.
Json MeasureWeightsMemory(const Options& options);

}  // namespace evald::bench
