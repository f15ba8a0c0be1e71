#include "worker/native/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace evald::native {
namespace {

constexpr double kDropped = -std::numeric_limits<double>::infinity();

// Keeps what is at least the k-th largest; equal ones stay, as in TopKLogitsWarper.
void KeepTopK(std::vector<double>* scores, int k) {
  if (k <= 0 || static_cast<size_t>(k) >= scores->size()) return;
  std::vector<double> sorted = *scores;
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  const double least = sorted[static_cast<size_t>(k - 1)];
  for (double& score : *scores) {
    if (score < least) score = kDropped;
  }
}

// From the least probable up, drops tokens while their probabilities add up to at most 1 - top_p;
// the most probable one always stays (TopPLogitsWarper).
void KeepTopP(std::vector<double>* scores, double top_p) {
  if (top_p >= 1) return;
  std::vector<size_t> order;
  for (size_t i = 0; i < scores->size(); ++i) {
    if ((*scores)[i] != kDropped) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return (*scores)[a] < (*scores)[b]; });
  const double top = (*scores)[order.back()];
  double total = 0, sum = 0;
  for (const size_t i : order) total += std::exp((*scores)[i] - top);
  for (size_t n = 0; n + 1 < order.size(); ++n) {
    double& score = (*scores)[order[n]];
    sum += std::exp(score - top);
    if (sum / total > 1 - top_p) break;
    score = kDropped;
  }
}

}  // namespace

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

double UniformFor(uint64_t seed, const Request& request, int token_index) {
  const auto document = static_cast<uint64_t>(request.doc_id);
  const std::array<uint32_t, 4> counter = {
      static_cast<uint32_t>(token_index), static_cast<uint32_t>(request.repeat),
      static_cast<uint32_t>(request.idx) ^ static_cast<uint32_t>(document >> 32),
      static_cast<uint32_t>(document)};
  const auto words =
      Philox(counter, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

int32_t Greedy(const float* logits, int64_t vocab_size, float maximum) {
  return static_cast<int32_t>(std::find(logits, logits + vocab_size, maximum) - logits);
}

int32_t Sample(const float* logits, int64_t vocab_size, const SamplingParams& sampling,
               double uniform) {
  std::vector<double> scores(logits, logits + vocab_size);
  for (double& score : scores) score /= sampling.temperature;
  KeepTopK(&scores, sampling.top_k);
  KeepTopP(&scores, sampling.top_p);
  const double top = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - top);
  double left = uniform * total;
  int32_t last = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] == 0) continue;
    last = static_cast<int32_t>(i);
    if (left < scores[i]) break;
    left -= scores[i];
  }
  return last;
}

}  // namespace evald::native
