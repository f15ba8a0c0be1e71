// rouge1, rouge2 and rougeLsum of the package rouge-score.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "evald/error.h"
#include "metrics/scoring/corpus_metric.h"
#include "metrics/scoring/sentence_scores.h"
#include "python/unicode.h"

namespace evald {
namespace {

constexpr size_t kCellsMax = 100'000'000;  // of a table of common subsequences

// ASCII letters and digits, in lower case; all else lies between tokens.
std::vector<std::string> RougeTokens(std::string_view text) {
  std::vector<std::string> tokens;
  bool inside = false;
  for (const char c : python::Lower(text)) {
    const bool valid = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (valid && !inside) tokens.emplace_back();
    if (valid) tokens.back() += c;
    inside = valid;
  }
  return tokens;
}

double FMeasure(double precision, double recall) {
  return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0.0;
}

double OfNGrams(const std::u32string& reference, const std::u32string& answer, size_t length) {
  const NGrams known = NGramsOf(reference, length);
  const NGrams found = NGramsOf(answer, length);
  int64_t shared = 0, references = 0, answers = 0;
  for (const auto& [ngram, count] : found) answers += count;
  for (const auto& [ngram, count] : known) {
    references += count;
    const auto match = found.find(ngram);
    if (match != found.end()) shared += std::min(count, match->second);
  }
  const auto share = [&](int64_t all) {
    return static_cast<double>(shared) / static_cast<double>(std::max<int64_t>(all, 1));
  };
  return FMeasure(share(answers), share(references));
}

// The sentences of a text: its lines that are not empty.
std::vector<std::u32string> SentencesOf(std::string_view text, WordNumbers* numbers) {
  std::vector<std::u32string> sentences;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) sentences.push_back(numbers->Of(RougeTokens(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return sentences;
}

// Adds the places in `reference` of one longest common subsequence, that which rouge-score finds.
void AddCommon(const std::u32string& reference, const std::u32string& answer,
               std::set<size_t>* places) {
  const size_t rows = reference.size(), columns = answer.size();
  if ((rows + 1) * (columns + 1) > kCellsMax) {
    throw Error(ErrorKind::kInput,
                fmt::format("rougeLsum: a sentence of {} words against one of {} takes too long",
                            columns, rows),
                "ask for shorter answers (max_gen_toks)");
  }
  std::vector<uint32_t> table((rows + 1) * (columns + 1));
  const auto at = [&](size_t i, size_t j) -> uint32_t& { return table[i * (columns + 1) + j]; };
  for (size_t i = 1; i <= rows; ++i) {
    for (size_t j = 1; j <= columns; ++j) {
      at(i, j) = reference[i - 1] == answer[j - 1] ? at(i - 1, j - 1) + 1
                                                   : std::max(at(i - 1, j), at(i, j - 1));
    }
  }
  for (size_t i = rows, j = columns; i > 0 && j > 0;) {
    if (reference[i - 1] == answer[j - 1]) {
      places->insert(i - 1);
      --i;
      --j;
    } else if (at(i, j - 1) > at(i - 1, j)) {
      --j;
    } else {
      --i;
    }
  }
}

using Counts = std::unordered_map<char32_t, int64_t>;

Counts CountsOf(const std::vector<std::u32string>& sentences, int64_t* all) {
  Counts counts;
  for (const std::u32string& sentence : sentences) {
    *all += static_cast<int64_t>(sentence.size());
    for (const char32_t word : sentence) ++counts[word];
  }
  return counts;
}

// Each word of a reference's sentence that a subsequence of any sentence of the answer has counts,
// as often as both texts have it.
double OfSummaries(const std::vector<std::u32string>& reference,
                   const std::vector<std::u32string>& answer) {
  int64_t references = 0, answers = 0, hits = 0;
  Counts left = CountsOf(reference, &references), found = CountsOf(answer, &answers);
  if (references == 0 || answers == 0) return 0;
  for (const std::u32string& sentence : reference) {
    std::set<size_t> places;
    for (const std::u32string& other : answer) AddCommon(sentence, other, &places);
    for (const size_t place : places) {
      int64_t& here = left[sentence[place]];
      int64_t& there = found[sentence[place]];
      if (here <= 0 || there <= 0) continue;
      ++hits;
      --here;
      --there;
    }
  }
  return FMeasure(static_cast<double>(hits) / static_cast<double>(answers),
                  static_cast<double>(hits) / static_cast<double>(references));
}

}  // namespace

RougeScores Rouge(const std::string& reference, const std::string& answer) {
  WordNumbers numbers;
  const std::u32string known = numbers.Of(RougeTokens(reference));
  const std::u32string found = numbers.Of(RougeTokens(answer));
  return {
      .rouge1 = OfNGrams(known, found, 1),
      .rouge2 = OfNGrams(known, found, 2),
      .rouge_lsum = OfSummaries(SentencesOf(reference, &numbers), SentencesOf(answer, &numbers))};
}

}  // namespace evald
