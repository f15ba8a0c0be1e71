// bleu: sacrebleu's corpus_bleu with its defaults, which are n-grams of up to four words, the
// tokenizer 13a, and the smoothing "exp" (Post 2018, "A Call for Clarity in Reporting BLEU Scores";
// Chen and Cherry 2014, method 3).
#include <utf8proc.h>

#include <array>
#include <cmath>
#include <limits>

#include "metrics/scoring/corpus_metric.h"
#include "metrics/scoring/sentence_scores.h"
#include "python/str.h"
#include "python/unicode.h"

namespace evald {
namespace {

constexpr size_t kOrders = 4;
// A document's statistics: words of the answer, words of the reference nearest to it in length,
// matching n-grams of each order, n-grams of each order.
constexpr size_t kAnswerWords = 0, kReferenceWords = 1, kMatches = 2, kTotals = 2 + kOrders;
constexpr size_t kStatistics = 2 + 2 * kOrders;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsStop(char c) { return c == '.' || c == ','; }

// The characters that are words of their own, wherever they are: those of mteval-v13a.pl.
bool IsMark(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

void ReplaceAll(std::string* text, std::string_view from, std::string_view to) {
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at)) {
    text->replace(at, from.size(), to);
    at += to.size();
  }
}

std::string SetMarksApart(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (IsMark(c)) {
      out.append({' ', c, ' '});
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// Rewrites pairs of neighbouring characters for which `fits`, from left to right; a character is in
// one pair at most. One of a pair is ASCII, so the last or first byte of the other will do.
template <typename Fits, typename Write>
std::string RewritePairs(const std::string& text, Fits&& fits, Write&& write) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    if (i + 1 < text.size() && fits(text[i], text[i + 1])) {
      write(text[i], text[i + 1], &out);
      i += 2;
    } else {
      out.push_back(text[i]);
      ++i;
    }
  }
  return out;
}

// The words of mteval-v13a.pl. A full stop or comma is a word of its own, unless it is between
// digits; so is a dash after a digit.
std::vector<std::string> Words13a(std::string_view sentence) {
  std::string text(python::StripRight(sentence));
  ReplaceAll(&text, "<skipped>", "");
  ReplaceAll(&text, "-\n", "");
  ReplaceAll(&text, "\n", " ");
  ReplaceAll(&text, "&quot;", "\"");
  ReplaceAll(&text, "&amp;", "&");
  ReplaceAll(&text, "&lt;", "<");
  ReplaceAll(&text, "&gt;", ">");
  text = SetMarksApart(" " + text + " ");
  text = RewritePairs(
      text, [](char a, char b) { return !IsDigit(a) && IsStop(b); },
      [](char a, char b, std::string* out) { out->append({a, ' ', b, ' '}); });
  text = RewritePairs(
      text, [](char a, char b) { return IsStop(a) && !IsDigit(b); },
      [](char a, char b, std::string* out) { out->append({' ', a, ' ', b}); });
  text = RewritePairs(
      text, [](char a, char b) { return IsDigit(a) && b == '-'; },
      [](char a, char b, std::string* out) { out->append({a, ' ', b, ' '}); });
  return WordsOf(text);
}

// Whether the character's category of Unicode is one of those that begin with the letter.
bool IsOfCategory(char32_t c, char letter) {
  return utf8proc_category_string(static_cast<utf8proc_int32_t>(c))[0] == letter;
}

// The same as RewritePairs, of characters: sets the one of a pair apart that is punctuation, if the
// other is no number.
std::u32string SetPunctuationApart(const std::u32string& text, bool behind) {
  std::u32string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pair = i + 1 < text.size() && IsOfCategory(text[behind ? i + 1 : i], 'P') &&
                      !IsOfCategory(text[behind ? i : i + 1], 'N');
    if (!pair) {
      out += text[i];
      continue;
    }
    out += behind ? std::u32string{text[i], U' ', text[i + 1], U' '}
                  : std::u32string{U' ', text[i], U' ', text[i + 1]};
    ++i;
  }
  return out;
}

// The words of mteval-v14.pl, for all scripts: punctuation is a word of its own, unless it is
// between numbers, and so is each symbol.
std::vector<std::string> WordsIntl(std::string_view sentence) {
  std::u32string text = python::Decode(python::StripRight(sentence));
  text = SetPunctuationApart(SetPunctuationApart(text, true), false);
  std::u32string out;
  for (const char32_t c : text) {
    if (IsOfCategory(c, 'S')) {
      out += {U' ', c, U' '};
    } else {
      out += c;
    }
  }
  return WordsOf(python::Encode(out));
}

size_t NearestLength(size_t length, const std::vector<std::u32string>& references) {
  const auto distance = [length](size_t other) {
    return other > length ? other - length : length - other;
  };
  size_t nearest = references.front().size();
  for (const std::u32string& reference : references) {
    const size_t size = reference.size();
    if (distance(size) < distance(nearest) ||
        (distance(size) == distance(nearest) && size < nearest)) {
      nearest = size;
    }
  }
  return nearest;
}

template <auto kWordsOf>
std::vector<double> BleuStatistics(const std::string& answer,
                                   const std::vector<std::string>& references) {
  WordNumbers numbers;
  const std::u32string words = numbers.Of(kWordsOf(answer));
  std::vector<std::u32string> known;
  for (const std::string& reference : references) known.push_back(numbers.Of(kWordsOf(reference)));
  std::vector<double> statistics(kStatistics);
  if (words.empty() && known.empty()) {  // as sacrebleu counts it
    statistics[kReferenceWords] = -1;
    return statistics;
  }
  RequireReference(answer, references);
  statistics[kAnswerWords] = static_cast<double>(words.size());
  statistics[kReferenceWords] = static_cast<double>(NearestLength(words.size(), known));
  for (size_t order = 0; order < kOrders; ++order) {
    NGrams most;  // of any reference
    for (const std::u32string& reference : known) {
      for (const auto& [ngram, count] : NGramsOf(reference, order + 1)) {
        most[ngram] = std::max(most[ngram], count);
      }
    }
    for (const auto& [ngram, count] : NGramsOf(words, order + 1)) {
      statistics[kTotals + order] += static_cast<double>(count);
      const auto found = most.find(ngram);
      if (found == most.end()) continue;
      statistics[kMatches + order] += static_cast<double>(std::min(count, found->second));
    }
  }
  return statistics;
}

double BrevityPenalty(double answer_words, double reference_words) {
  if (answer_words >= reference_words) return 1;
  return answer_words > 0 ? std::exp(1 - reference_words / answer_words) : 0;
}

double BleuScore(const std::vector<double>& sums) {
  constexpr double kLogOfZero = -9999999999.0;  // sacrebleu's
  std::array<double, kOrders> precisions{};
  double smooth = 1;
  bool any = false;
  for (size_t order = 0; order < kOrders; ++order) any = any || sums[kMatches + order] > 0;
  if (!any) return 0;
  for (size_t order = 0; order < kOrders && sums[kTotals + order] > 0; ++order) {
    const double matches = sums[kMatches + order], total = sums[kTotals + order];
    if (matches == 0) smooth *= 2;
    precisions[order] = matches == 0 ? 100.0 / (smooth * total) : 100.0 * matches / total;
  }
  double logarithms = 0;
  for (const double precision : precisions) {
    logarithms += precision == 0 ? kLogOfZero : std::log(precision);
  }
  return BrevityPenalty(sums[kAnswerWords], sums[kReferenceWords]) *
         std::exp(logarithms / static_cast<double>(kOrders));
}

}  // namespace

extern constinit const Metric kBleuMetric = {
    .name = "bleu", .aggregation = "bleu", .text = kTargetAndAnswer};

extern constinit const Aggregation kBleuAggregation =
    CorpusAggregation<BleuStatistics<Words13a>, BleuScore>("bleu");

double IntlBleu(const std::string& answer, const std::string& reference) {
  return BleuScore(BleuStatistics<WordsIntl>(answer, {reference}));
}

}  // namespace evald
