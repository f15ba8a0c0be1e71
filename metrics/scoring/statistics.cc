#include "metrics/scoring/statistics.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "base/cores.h"
#include "evald/error.h"
#include "python/numpy.h"
#include "python/random.h"

namespace evald {
namespace {

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

}  // namespace

double Mean(const std::vector<double>& values) {
  return Sum(values) / static_cast<double>(values.size());
}

double SampleStddev(const std::vector<double>& values) {
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += PythonSquare(value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double MeanStderr(const std::vector<double>& values) {
  return SampleStddev(values) / std::sqrt(static_cast<double>(values.size()));
}

void ThrowIfStopped(const std::function<bool()>& stopped) {
  if (stopped && stopped()) throw Error(ErrorKind::kInfrastructure, "aggregating was stopped");
}

double BootstrapStderr(const std::function<double(const std::vector<size_t>&)>& statistic,
                       size_t count, int iterations, const std::function<bool()>& stopped) {
  if (iterations < 2) return std::numeric_limits<double>::quiet_NaN();
  const int chunk = std::min(1000, iterations);
  const int chunks = iterations / chunk;
  std::vector<double> values(static_cast<size_t>(chunk) * static_cast<size_t>(chunks));
  std::atomic<int> next{0};
  const auto work = [&] {
    std::vector<size_t> drawn(count);
    for (int seed = next++; seed < chunks; seed = next++) {
      PythonRandom random(seed);
      double* out = values.data() + static_cast<size_t>(seed) * static_cast<size_t>(chunk);
      for (int i = 0; i < chunk; ++i) {
        if (stopped && stopped()) return;
        random.ChoiceIndices(count, &drawn);
        out[i] = statistic(drawn);
      }
    }
  };
  const unsigned helpers =
      std::min(static_cast<unsigned>(UsableCores()), static_cast<unsigned>(chunks)) - 1;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < helpers; ++i) threads.emplace_back(work);
    work();
  }
  ThrowIfStopped(stopped);
  return SampleStddev(values);
}

double PooledStderr(const std::vector<double>& stderrs, const std::vector<double>& sizes) {
  double variance = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    variance += (sizes[i] - 1) * PythonSquare(stderrs[i]) * sizes[i];
  }
  const double total = Sum(sizes);
  variance /= total - static_cast<double>(sizes.size());
  return std::sqrt(variance / total);
}

double UnweightedStderr(const std::vector<double>& stderrs) {
  double squares = 0;
  for (const double value : stderrs) squares += PythonSquare(value);
  return std::sqrt(squares) / static_cast<double>(stderrs.size());
}

}  // namespace evald
