#pragma once

#include <cstddef>
#include <functional>
#include <vector>

// Means and standard errors of lm_eval 0.4.13 (api/metrics.py), in its order of operations.
namespace evald {

/// sum(values) / len(values), added from left to right. Not empty.
double Mean(const std::vector<double>& values);

/// sqrt(sum((x - mean)^2) / (n - 1)); n is at least 2.
double SampleStddev(const std::vector<double>& values);

/// SampleStddev / sqrt(n): the standard error of a mean.
double MeanStderr(const std::vector<double>& values);

/// The standard deviation of `statistic` over `iterations` samples with replacement of `count`
/// items, drawn like the harness's: in chunks of min(1000, iterations), the i-th from
/// random.Random(i).choices. `statistic` gets the drawn positions and may be called from several
/// threads at once. NaN if there are fewer than two samples. Throws Error(kInfrastructure) soon
/// after `stopped` has become true. `stopped` may be null, and is called from several threads.
double BootstrapStderr(const std::function<double(const std::vector<size_t>&)>& statistic,
                       size_t count, int iterations,
                       const std::function<bool()>& stopped = nullptr);

/// Throws Error(kInfrastructure) if `stopped` is true. It may be null.
void ThrowIfStopped(const std::function<bool()>& stopped);

/// The standard error of a size-weighted mean over subtasks, and of an unweighted one
/// (pooled_sample_stderr, unweighted_mean_stderr).
double PooledStderr(const std::vector<double>& stderrs, const std::vector<double>& sizes);
double UnweightedStderr(const std::vector<double>& stderrs);

}  // namespace evald
