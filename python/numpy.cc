#include "python/numpy.h"

#include <cmath>

namespace evald {

double PairwiseSum(const double* values, size_t count) {
  constexpr size_t kLanes = 8;
  constexpr size_t kBlock = 128;
  if (count < kLanes) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += values[i];
    return sum;
  }
  if (count > kBlock) {
    const size_t half = count / 2 - count / 2 % kLanes;
    return PairwiseSum(values, half) + PairwiseSum(values + half, count - half);
  }
  double lanes[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = values[lane];
  size_t i = kLanes;
  for (; i < count - count % kLanes; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
  }
  double sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
               ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  for (; i < count; ++i) sum += values[i];
  return sum;
}

double PythonSquare(double x) {
  volatile double two = 2.0;  // a constant exponent would be compiled into x * x
  return std::pow(x, two);
}

size_t ArgMax(const std::vector<double>& values) {
  size_t best = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return i;
    if (values[i] > values[best]) best = i;
  }
  return best;
}

std::vector<double> Softmax(const std::vector<double>& values) {
  const double largest = values[ArgMax(values)];
  std::vector<double> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = std::exp(values[i] - largest);
  const double sum = PairwiseSum(result.data(), result.size());
  for (double& value : result) value /= sum;
  return result;
}

}  // namespace evald
