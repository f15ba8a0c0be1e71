#include "metrics/scoring/sample_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/scoring/code_eval.h"

namespace evald {
namespace {

struct Word {
  std::string_view text;
  SampleMetric::Kind kind;
};
constexpr Word kWords[] = {{"avg@", SampleMetric::Kind::kAverage},
                           {"pass@", SampleMetric::Kind::kPassAny},
                           {"pass^", SampleMetric::Kind::kPassAll},
                           {"maj@", SampleMetric::Kind::kMajority}};

const Word& WordOf(SampleMetric::Kind kind) {
  return *std::find_if(std::begin(kWords), std::end(kWords),
                       [&](const Word& word) { return word.kind == kind; });
}

// A number of samples: digits, and not 0.
std::optional<int64_t> ParseCount(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && count > 0 ? std::optional(count) : std::nullopt;
}

int64_t CountRight(const SampleMetric& metric, const SampleValues& samples) {
  int64_t right = 0;
  for (const double value : samples.values) {
    if (value != 0 && value != 1) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}{}: a sample has the value {}, expected 0 or 1", WordOf(metric.kind).text,
                      metric.k, value),
          "name the metric that is right or wrong in sample_metrics, such as exact_match:pass@4");
    }
    right += value == 1 ? 1 : 0;
  }
  return right;
}

// C(right, k) / C(all, k)
double PassAll(int64_t all, int64_t right, int64_t k) {
  if (right < k) return 0;
  double chance = 1;
  for (int64_t i = 0; i < k; ++i)
    chance *= static_cast<double>(right - i) / static_cast<double>(all - i);
  return chance;
}

double Majority(const SampleValues& samples, size_t k) {
  struct Answer {
    size_t first = 0;  // the sample that gave it first
    int64_t votes = 0;
  };
  std::map<std::string, Answer> answers;
  for (size_t i = 0; i < k; ++i)
    ++answers.try_emplace(ToLine(samples.answers[i]), Answer{i, 0}).first->second.votes;
  Answer best;
  for (const auto& [text, answer] : answers) {
    const bool more =
        answer.votes > best.votes || (answer.votes == best.votes && answer.first < best.first);
    if (more) best = answer;
  }
  return samples.values[best.first];
}

}  // namespace

std::optional<SampleMetric> ParseSampleMetric(std::string_view text) {
  SampleMetric metric;
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    metric.of = text.substr(0, colon);
    text = text.substr(colon + 1);
    if (metric.of.empty()) return std::nullopt;
  }
  for (const Word& word : kWords) {
    if (!text.starts_with(word.text)) continue;
    const std::optional<int64_t> k = ParseCount(text.substr(word.text.size()));
    if (!k) return std::nullopt;
    metric.kind = word.kind;
    metric.k = *k;
    return metric;
  }
  return std::nullopt;
}

int64_t SamplesNeeded(const std::vector<std::string>& entries) {
  int64_t most = 1;
  for (const std::string& entry : entries) {
    if (const auto metric = ParseSampleMetric(entry)) most = std::max(most, metric->k);
  }
  return most;
}

std::string NameOf(const SampleMetric& metric, std::string_view of) {
  return fmt::format("{}_{}{}", of, WordOf(metric.kind).text, metric.k);
}

std::string_view MetricOfSamples(std::string_view name) {
  const size_t at = name.rfind('_');
  if (at == std::string_view::npos) return "";
  const std::string_view entry = name.substr(at + 1);
  return entry.find(':') == std::string_view::npos && ParseSampleMetric(entry) ? name.substr(0, at)
                                                                               : "";
}

double ValueOf(const SampleMetric& metric, const SampleValues& samples) {
  const auto all = static_cast<int64_t>(samples.values.size());
  const auto first = samples.values.begin();
  switch (metric.kind) {
    case SampleMetric::Kind::kAverage:
      return std::accumulate(first, first + metric.k, 0.0) / static_cast<double>(metric.k);
    case SampleMetric::Kind::kPassAny:
      return PassAtK(all, CountRight(metric, samples), metric.k);
    case SampleMetric::Kind::kPassAll:
      return PassAll(all, CountRight(metric, samples), metric.k);
    case SampleMetric::Kind::kMajority:
      break;
  }
  return Majority(samples, static_cast<size_t>(metric.k));
}

}  // namespace evald
