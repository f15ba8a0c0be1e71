#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "metrics/scoring/metric.h"

// Metrics of a whole corpus of texts, as sacrebleu 2.6 computes them: bleu, chrf, ter. A document's
// value is the pair of its references and its answer.
namespace evald {

/// A corpus metric: each document has statistics, and the score comes from their sums.
struct CorpusMetric {
  /// The statistics of one document. Throws Error(kInput) if there are too few references.
  std::vector<double> (*statistics)(const std::string& answer,
                                    const std::vector<std::string>& references);
  double (*score)(const std::vector<double>& sums);
};

/// The aggregate of such values, with a bootstrapped standard error. References are a text or a
/// list of texts or nulls; an answer is a text or a list of one. As in the harness
/// (_sacreformat), documents have as many references as the one with the fewest among those that
/// are drawn. Throws Error(kInput) for anything else, and for documents of which only some have
/// lists.
Aggregated AggregateCorpus(const MetricValues& values, const Draws& draws,
                           const CorpusMetric& metric);

/// The aggregation of the corpus metric of these two functions.
template <auto kStatistics, auto kScore>
constexpr Aggregation CorpusAggregation(const char* name) {
  return {.name = name,
          .takes = ValueForm::kTexts,
          .bootstraps = true,
          .aggregate = [](const MetricValues& values, const Draws& draws) {
            return AggregateCorpus(values, draws, {kStatistics, kScore});
          }};
}

// For files of corpus metrics.

/// Throws Error(kInput) if there are none.
void RequireReference(const std::string& answer, const std::vector<std::string>& references);

/// The parts of a text between white space, as Python's split().
std::vector<std::string> WordsOf(std::string_view text);

/// A number for each different word.
class WordNumbers {
 public:
  std::u32string Of(const std::vector<std::string>& words);

 private:
  std::unordered_map<std::string, char32_t> numbers_;
};

/// How often each sequence of `length` units occurs. The keys point into `units`, which are code
/// points, or numbers of words.
using NGrams = std::unordered_map<std::u32string_view, int64_t>;
NGrams NGramsOf(std::u32string_view units, size_t length);

}  // namespace evald
