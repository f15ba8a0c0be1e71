// process_results of the task drop: exact match and F1 of the bags of words of an answer, by the
// best of the gold answers (lm_eval/tasks/drop/utils.py, after Dua et al. 2019, arXiv 1903.00161).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/task_results.h"
#include "python/number.h"
#include "python/str.h"
#include "python/unicode.h"

namespace evald {
namespace {

using Bag = std::set<std::string>;

bool IsNumber(const std::string& text) { return python::ParseFloat(text).has_value(); }

// Without string.punctuation, unless the text is a number.
std::string WithoutPunctuation(const std::string& text) {
  if (IsNumber(text)) return text;
  std::string kept;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::ispunct(byte) == 0) kept += c;
  }
  return kept;
}

// re.sub(r"\b(a|an|the)\b", " ", text)
std::string WithoutArticles(const std::string& text) {
  const std::u32string all = python::Decode(text);
  std::u32string kept;
  for (size_t at = 0; at < all.size();) {
    size_t end = at;
    while (end < all.size() && python::IsWord(all[end])) ++end;
    const std::u32string_view word = std::u32string_view(all).substr(at, end - at);
    if (word == U"a" || word == U"an" || word == U"the") {
      kept += U' ';
    } else if (!word.empty()) {
      kept += word;
    } else {
      kept += all[end++];
    }
    at = end;
  }
  return python::Encode(kept);
}

// " ".join(text.split())
std::string OneSpaced(const std::string& text) {
  std::string joined;
  python::Split(text, -1, false, [&](std::string_view word) {
    joined += joined.empty() ? "" : " ";
    joined += word;
  });
  return joined;
}

std::string NormalizedToken(std::string_view token) {
  std::string text = WithoutPunctuation(python::Lower(token));
  if (const auto number = python::ParseFloat(text)) text = python::FloatRepr(*number);
  return OneSpaced(WithoutArticles(text));
}

// Tokens lie between spaces and hyphens.
std::string NormalizedAnswer(const std::string& text) {
  std::string joined;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(" -", at), text.size());
    const std::string token = NormalizedToken(std::string_view(text).substr(at, end - at));
    if (!token.empty()) joined += (joined.empty() ? "" : " ") + token;
    at = end + 1;
  }
  return joined;
}

Bag BagOf(const std::string& normalized) {
  Bag bag;
  python::Split(normalized, -1, false, [&](std::string_view word) { bag.emplace(word); });
  return bag;
}

size_t Shared(const Bag& a, const Bag& b) {
  return static_cast<size_t>(
      std::count_if(a.begin(), a.end(), [&](const std::string& word) { return b.contains(word); }));
}

// If the gold answer holds numbers, one of them must be in the predicted answer.
bool SharesNumber(const Bag& gold, const Bag& predicted) {
  bool any = false;
  for (const std::string& word : gold) {
    if (!IsNumber(word)) continue;
    if (predicted.contains(word)) return true;
    any = true;
  }
  return !any;
}

double F1OfBags(const Bag& predicted, const Bag& gold) {
  const auto shared = static_cast<double>(Shared(gold, predicted));
  const double precision = predicted.empty() ? 1.0 : shared / static_cast<double>(predicted.size());
  const double recall = gold.empty() ? 1.0 : shared / static_cast<double>(gold.size());
  if (precision == 0.0 && recall == 0.0) return 0.0;
  return (2 * precision * recall) / (precision + recall);
}

struct DropScore {
  double exact = 0;
  double f1 = 0;
};

// The predicted answer is one span, so it is aligned with the span of the gold answer that it fits
// best; the others count as 0.
DropScore ScoreOf(const std::string& predicted, const std::vector<std::string>& spans) {
  const std::string normalized = NormalizedAnswer(predicted);
  const Bag bag = BagOf(normalized);
  double best = 0;
  bool exact = spans.size() == 1;
  for (const std::string& span : spans) {
    const std::string gold = NormalizedAnswer(span);
    exact = exact && gold == normalized;
    const Bag gold_bag = BagOf(gold);
    if (SharesNumber(gold_bag, bag)) best = std::max(best, F1OfBags(bag, gold_bag));
  }
  // numpy's round of two digits
  const double mean = best / static_cast<double>(std::max<size_t>(spans.size(), 1));
  return {exact ? 1.0 : 0.0, std::nearbyint(mean * 100.0) / 100.0};
}

// max() of Python keeps the whole number 0 that it began with.
void Raise(double value, Json* most) {
  if (value > most->get<double>()) *most = value;
}

Json ScoreDrop(const Json& doc, const std::vector<Json>& results) {
  const std::string& predicted = TextResult(results);
  const Json answers = Field<Json>(doc, "answers", "the document");
  Json exact = 0, f1 = 0;
  for (const Json& answer : answers) {
    const bool texts =
        answer.is_array() && !answer.empty() &&
        std::all_of(answer.begin(), answer.end(), [](const Json& one) { return one.is_string(); });
    if (!texts) {
      throw Error(ErrorKind::kInput,
                  fmt::format("the document's answers have {}, expected a list of texts",
                              Shortened(ToLine(answer), 200)));
    }
    const auto spans = answer.get<std::vector<std::string>>();
    const DropScore score = ScoreOf(predicted, spans);
    if (python::Strip(spans[0]).empty()) continue;
    Raise(score.exact, &exact);
    Raise(score.f1, &f1);
  }
  return {{"em", exact}, {"f1", f1}};
}

}  // namespace

extern constinit const TaskResults kDropResults = {"drop/utils.process_results", ScoreDrop};

}  // namespace evald
