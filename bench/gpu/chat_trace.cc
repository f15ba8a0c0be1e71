#include "bench/gpu/chat_trace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <utility>

namespace evald::bench {
namespace {

// A number of tokens, and the number of requests with at most that many.
struct Edge {
  double tokens;
  double requests;
};
constexpr Edge kPrompts[] = {{2, 0},     {5, 22},     {10, 191},   {20, 511},    {50, 825},
                             {100, 997}, {200, 1182}, {500, 1748}, {1000, 2102}, {2000, 2104}};
constexpr Edge kOutputs[] = {{2, 0},     {5, 49},     {10, 202},   {20, 448},    {50, 814},
                             {100, 979}, {200, 1266}, {500, 1883}, {1000, 2095}, {2000, 2104}};

template <size_t N>
int Quantile(const Edge (&edges)[N], double share) {
  const double wanted = share * edges[N - 1].requests;
  size_t upper = 1;
  while (upper + 1 < N && edges[upper].requests < wanted) ++upper;
  const Edge &from = edges[upper - 1], &to = edges[upper];
  const double within = (wanted - from.requests) / (to.requests - from.requests);
  return static_cast<int>(std::ceil(from.tokens * std::pow(to.tokens / from.tokens, within)));
}

// Replaces std::shuffle, whose order depends on the library.
template <typename T>
void Shuffle(std::vector<T>* values, std::mt19937_64* generator) {
  for (size_t left = values->size(); left > 1; --left) {
    std::swap((*values)[left - 1], (*values)[(*generator)() % left]);
  }
}

}  // namespace

std::vector<ChatLengths> ChatTrace(int count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<int> prompts, outputs;
  for (int i = 0; i < count; ++i) {
    const double share = (i + 0.5) / count;
    prompts.push_back(Quantile(kPrompts, share));
    outputs.push_back(Quantile(kOutputs, share));
  }
  Shuffle(&prompts, &generator);
  Shuffle(&outputs, &generator);
  std::vector<ChatLengths> lengths;
  for (size_t i = 0; i < prompts.size(); ++i) lengths.push_back({prompts[i], outputs[i]});
  return lengths;
}

}  // namespace evald::bench
