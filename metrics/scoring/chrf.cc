// chrf and chrf++: sacrebleu's corpus_chrf with its defaults. Character n-grams of up to six, for
// chrf++ word n-grams of up to two as well; recall counts twice as much as precision (Popović 2015
// and 2017).
#include "metrics/scoring/corpus_metric.h"
#include "python/unicode.h"

namespace evald {
namespace {

constexpr size_t kCharacterOrders = 6, kWordOrders = 2;
constexpr double kFactor = 4;  // beta squared
constexpr std::u32string_view kMarks = U"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

// A text's characters without white space, and its words with a mark at their end, or else at
// their begin, set apart.
struct Units {
  std::u32string characters;
  std::vector<std::string> words;
};

Units UnitsOf(const std::string& text) {
  Units units;
  for (const std::string& word : WordsOf(text)) {
    const std::u32string letters = python::Decode(word);
    units.characters += letters;
    const auto add = [&](size_t from, size_t count) {
      units.words.push_back(python::Encode(std::u32string_view(letters).substr(from, count)));
    };
    const size_t size = letters.size();
    if (size > 1 && kMarks.find(letters.back()) != std::u32string_view::npos) {
      add(0, size - 1);
      add(size - 1, 1);
    } else if (size > 1 && kMarks.find(letters.front()) != std::u32string_view::npos) {
      add(0, 1);
      add(1, size - 1);
    } else {
      add(0, size);
    }
  }
  return units;
}

// Appends the n-grams of the answer, those of the reference, and the matches.
void Compare(const NGrams& answer, const NGrams& reference, std::vector<double>* statistics) {
  double answers = 0, references = 0, matches = 0;
  for (const auto& [ngram, count] : answer) {
    answers += static_cast<double>(count);
    const auto found = reference.find(ngram);
    if (found != reference.end()) matches += static_cast<double>(std::min(count, found->second));
  }
  for (const auto& [ngram, count] : reference) references += static_cast<double>(count);
  statistics->insert(statistics->end(), {reference.empty() ? 0 : answers, references, matches});
}

double ChrfScore(const std::vector<double>& sums) {
  double precision = 0, recall = 0, orders = 0;
  for (size_t i = 0; i + 2 < sums.size(); i += 3) {
    if (sums[i] == 0 || sums[i + 1] == 0) continue;
    precision += sums[i + 2] / sums[i];
    recall += sums[i + 2] / sums[i + 1];
    ++orders;
  }
  if (orders > 0) {
    precision /= orders;
    recall /= orders;
  }
  if (precision + recall == 0) return 0;
  double score = (1 + kFactor) * precision * recall;
  score /= kFactor * precision + recall;
  return 100 * score;
}

// The statistics with the reference that gives the best score.
std::vector<double> Best(const std::string& answer, const std::vector<std::string>& references,
                         size_t word_orders) {
  RequireReference(answer, references);
  const Units ours = UnitsOf(answer);
  std::vector<double> best;
  double best_score = -1;
  for (const std::string& reference : references) {
    const Units theirs = UnitsOf(reference);
    std::vector<double> statistics;
    for (size_t order = 1; order <= kCharacterOrders; ++order) {
      Compare(NGramsOf(ours.characters, order), NGramsOf(theirs.characters, order), &statistics);
    }
    WordNumbers numbers;
    const std::u32string words = numbers.Of(ours.words), known = numbers.Of(theirs.words);
    for (size_t order = 1; order <= word_orders; ++order) {
      Compare(NGramsOf(words, order), NGramsOf(known, order), &statistics);
    }
    const double score = ChrfScore(statistics);
    if (score <= best_score) continue;
    best_score = score;
    best = std::move(statistics);
  }
  return best;
}

std::vector<double> ChrfStatistics(const std::string& answer,
                                   const std::vector<std::string>& references) {
  return Best(answer, references, 0);
}

std::vector<double> ChrfPlusPlusStatistics(const std::string& answer,
                                           const std::vector<std::string>& references) {
  return Best(answer, references, kWordOrders);
}

}  // namespace

extern constinit const Metric kChrfMetric = {
    .name = "chrf", .aggregation = "chrf", .text = kTargetAndAnswer};
extern constinit const Metric kChrfPlusPlusMetric = {
    .name = "chrf++", .aggregation = "chrf++", .text = kTargetAndAnswer};

extern constinit const Aggregation kChrfAggregation =
    CorpusAggregation<ChrfStatistics, ChrfScore>("chrf");
extern constinit const Aggregation kChrfPlusPlusAggregation =
    CorpusAggregation<ChrfPlusPlusStatistics, ChrfScore>("chrf++");

}  // namespace evald
