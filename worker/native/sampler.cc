#include "worker/native/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "evald/error.h"

namespace evald::native {
namespace {

constexpr double kDropped = -std::numeric_limits<double>::infinity();

// Keeps scores that are at least the k-th largest, including equal ones, like TopKLogitsWarper.
void KeepTopK(std::vector<double>* scores, int k) {
  if (k <= 0 || static_cast<size_t>(k) >= scores->size()) return;
  std::vector<double> sorted = *scores;
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  const double least = sorted[static_cast<size_t>(k - 1)];
  for (double& score : *scores) {
    if (score < least) score = kDropped;
  }
}

// Drops the least probable tokens while their probabilities add up to at most 1 - top_p. The most
// probable token always stays (TopPLogitsWarper).
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

// exp(score - largest); 0 for dropped tokens.
std::vector<double> Exponentials(const std::vector<double>& scores) {
  const double top = *std::max_element(scores.begin(), scores.end());
  std::vector<double> masses;
  masses.reserve(scores.size());
  for (const double score : scores) masses.push_back(std::exp(score - top));
  return masses;
}

std::vector<double> Softmax(const std::vector<double>& scores) {
  std::vector<double> probabilities = Exponentials(scores);
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& probability : probabilities) probability /= total;
  return probabilities;
}

double Entropy(const std::vector<double>& probabilities) {
  double entropy = 0;
  for (const double p : probabilities) {
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

// Keeps, of the 100 most probable tokens, the first ones whose parts of the entropy add up to at
// most top_h of it; always the first (TopHLogitsWarper).
void KeepTopH(std::vector<double>* scores, double top_h) {
  constexpr size_t kLooked = 100;
  std::vector<size_t> order(scores->size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t looked = std::min(kLooked, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(looked), order.end(),
                    [&](size_t a, size_t b) {
                      return std::pair(-(*scores)[a], a) < std::pair(-(*scores)[b], b);
                    });
  std::vector<double> top;
  for (size_t i = 0; i < looked; ++i) top.push_back((*scores)[order[i]]);
  const std::vector<double> probabilities = Softmax(top);
  const double most = Entropy(probabilities) * top_h;
  double sum = 0;
  size_t kept = 0;
  for (; kept < looked; ++kept) {
    const double p = probabilities[kept];
    if (p > 0) sum -= p * std::log(p);
    if (kept > 0 && sum > most) break;
  }
  for (size_t i = kept; i < order.size(); ++i) (*scores)[order[i]] = kDropped;
}

// Drops tokens with a probability below `least(probabilities)`, but never the most probable ones.
template <typename Least>
void KeepProbable(std::vector<double>* scores, const Least& least) {
  const std::vector<double> probabilities = Softmax(*scores);
  const double top = *std::max_element(scores->begin(), scores->end());
  const double limit = least(probabilities);
  for (size_t i = 0; i < scores->size(); ++i) {
    if (probabilities[i] < limit && (*scores)[i] < top) (*scores)[i] = kDropped;
  }
}

// Keeps the tokens whose information is nearest to the entropy, until their probabilities add up to
// `mass` (TypicalLogitsWarper).
void KeepTypical(std::vector<double>* scores, double mass) {
  const std::vector<double> probabilities = Softmax(*scores);
  const double entropy = Entropy(probabilities);
  std::vector<double> distance;
  std::vector<size_t> order;
  for (size_t i = 0; i < scores->size(); ++i) {
    distance.push_back(std::abs(-std::log(probabilities[i]) - entropy));
    if (probabilities[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return distance[a] < distance[b]; });
  double sum = 0;
  size_t last = 0;
  for (; last + 1 < order.size(); ++last) {
    sum += probabilities[order[last]];
    if (sum >= mass) break;
  }
  const double limit = distance[order[last]];
  for (const size_t i : order) {
    if (distance[i] > limit && i != order[0]) (*scores)[i] = kDropped;
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

int32_t ArgMax(const float* logits, int64_t vocab_size) {
  int64_t best = 0;
  for (int64_t i = 0; i < vocab_size; ++i) {
    if (std::isnan(logits[i])) return static_cast<int32_t>(i);
    if (logits[i] > logits[best]) best = i;
  }
  return static_cast<int32_t>(best);
}

bool HaveSoftmax(const float* logits, int64_t vocab_size) {
  bool any = false;
  for (int64_t i = 0; i < vocab_size; ++i) {
    if (!(logits[i] < std::numeric_limits<float>::infinity())) return false;
    any = any || logits[i] > -std::numeric_limits<float>::infinity();
  }
  return any;
}

std::vector<double> Masses(const float* logits, int64_t vocab_size,
                           const GenerationSettings& settings) {
  if (std::any_of(logits, logits + vocab_size,
                  [](float logit) { return !(logit < std::numeric_limits<float>::infinity()); })) {
    throw Error(ErrorKind::kInput, "the logits that a token is drawn from hold NaN or infinity",
                "the checkpoint's weights hold NaN or infinite values, or overflow");
  }
  std::vector<double> scores(logits, logits + vocab_size);
  for (double& score : scores) score /= settings.temperature;
  if (*std::max_element(scores.begin(), scores.end()) == kDropped) {
    throw Error(ErrorKind::kInput, "the generation settings leave no token to draw",
                "look at suppress_tokens, bad_words_ids and sequence_bias");
  }
  if (settings.top_h > 0) KeepTopH(&scores, settings.top_h);
  KeepTopK(&scores, settings.top_k);
  KeepTopP(&scores, settings.top_p);
  if (settings.min_p > 0) {
    KeepProbable(&scores, [&](const std::vector<double>& p) {
      return settings.min_p * *std::max_element(p.begin(), p.end());
    });
  }
  if (settings.typical_p < 1) KeepTypical(&scores, settings.typical_p);
  if (settings.epsilon_cutoff > 0) {
    KeepProbable(&scores, [&](const std::vector<double>&) { return settings.epsilon_cutoff; });
  }
  if (settings.eta_cutoff > 0) {
    KeepProbable(&scores, [&](const std::vector<double>& p) {
      const double eta = settings.eta_cutoff;
      return std::min(eta, std::sqrt(eta) * std::exp(-Entropy(p)));
    });
  }
  return Exponentials(scores);
}

int32_t Sample(const float* logits, int64_t vocab_size, const GenerationSettings& settings,
               double uniform) {
  const std::vector<double> masses = Masses(logits, vocab_size, settings);
  double left = uniform * std::accumulate(masses.begin(), masses.end(), 0.0);
  int32_t last = 0;
  for (size_t i = 0; i < masses.size(); ++i) {
    if (masses[i] == 0) continue;
    last = static_cast<int32_t>(i);
    if (left < masses[i]) break;
    left -= masses[i];
  }
  return last;
}

}  // namespace evald::native
