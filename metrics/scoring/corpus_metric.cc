#include "metrics/scoring/corpus_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/statistics.h"
#include "python/str.h"

namespace evald {
namespace {

// One document of a corpus. A reference that is null does not count, but has its place.
struct CorpusText {
  const std::string* answer;
  std::vector<const Json*> references;
};

[[noreturn]] void Refuse(const char* what, const Json& found, const char* expected) {
  throw Error(ErrorKind::kInput, fmt::format("{}: found {}, expected {}", what,
                                             Shortened(ToLine(found), 200), expected));
}

const std::string* AnswerOf(const Json& value, bool in_list) {
  if (value.is_array() != in_list) {
    Refuse("the answer", value,
           in_list ? "a list of one text, as in the first document"
                   : "a text, as in the first document");
  }
  if (in_list && value.size() != 1) Refuse("the answer", value, "one text");
  const Json& text = in_list ? value[0] : value;
  if (!text.is_string()) Refuse("the answer", value, "a text");
  return text.get_ptr<const std::string*>();
}

std::vector<const Json*> ReferencesOf(const Json& value, bool in_list) {
  if (value.is_array() != in_list) {
    Refuse(
        "the references", value,
        in_list ? "a list of texts, as in the first document" : "a text, as in the first document");
  }
  std::vector<const Json*> references;
  if (!in_list) references.push_back(&value);
  if (in_list) {
    for (const Json& reference : value) references.push_back(&reference);
  }
  for (const Json* reference : references) {
    if (!reference->is_string() && !(in_list && reference->is_null())) {
      Refuse("the references", value, in_list ? "a list of texts" : "a text");
    }
  }
  return references;
}

std::vector<CorpusText> CorpusOf(const MetricValues& values) {
  std::vector<CorpusText> corpus;
  bool lists = false, answers_in_lists = false;
  for (const Json* value : values) {
    if (!value->is_array() || value->size() != 2) {
      Refuse("the value", *value, "a pair of references and answer");
    }
    if (corpus.empty()) {
      lists = (*value)[0].is_array();
      answers_in_lists = (*value)[1].is_array();
    }
    corpus.push_back({AnswerOf((*value)[1], answers_in_lists), ReferencesOf((*value)[0], lists)});
  }
  return corpus;
}

// Statistics of all documents, each with its first `count` references.
class Statistics {
 public:
  Statistics(const std::vector<CorpusText>& corpus, const CorpusMetric& metric, const Draws& draws)
      : corpus_(corpus), metric_(metric), draws_(draws) {
    for (const CorpusText& text : corpus) counts_.push_back(text.references.size());
    for (const size_t count : counts_) {
      if (!tables_.contains(count)) tables_[count] = TableOf(count);
    }
  }

  double ScoreOf(const std::vector<size_t>& items) const {
    size_t count = counts_[items.front()];
    for (const size_t item : items) count = std::min(count, counts_[item]);
    const Table& table = tables_.at(count);
    std::vector<double> sums(table[items.front()].size());
    for (const size_t item : items) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += table[item][i];
    }
    return metric_.score(sums);
  }

 private:
  using Table = std::vector<std::vector<double>>;

  // Documents with fewer references have no statistics in the table.
  Table TableOf(size_t count) const {
    Table table(corpus_.size());
    for (size_t i = 0; i < corpus_.size(); ++i) {
      if (counts_[i] < count) continue;
      ThrowIfStopped(draws_.stopped);
      std::vector<std::string> references;
      for (size_t r = 0; r < count; ++r) {
        const Json& reference = *corpus_[i].references[r];
        if (reference.is_string()) references.push_back(reference.get<std::string>());
      }
      table[i] = metric_.statistics(*corpus_[i].answer, references);
    }
    return table;
  }

  const std::vector<CorpusText>& corpus_;
  const CorpusMetric& metric_;
  const Draws& draws_;
  std::vector<size_t> counts_;  // of references, by document
  std::map<size_t, Table> tables_;
};

}  // namespace

Aggregated AggregateCorpus(const MetricValues& values, const Draws& draws,
                           const CorpusMetric& metric) {
  const std::vector<CorpusText> corpus = CorpusOf(values);
  const Statistics statistics(corpus, metric, draws);
  return Bootstrapped([&](const std::vector<size_t>& items) { return statistics.ScoreOf(items); },
                      corpus.size(), draws);
}

void RequireReference(const std::string& answer, const std::vector<std::string>& references) {
  if (!references.empty()) return;
  throw Error(ErrorKind::kInput, fmt::format("a document has no reference; its answer is {}",
                                             ToLine(Json(Shortened(answer, 200)))));
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  python::Split(text, -1, false, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

std::u32string WordNumbers::Of(const std::vector<std::string>& words) {
  std::u32string numbers;
  for (const std::string& word : words) {
    numbers.push_back(
        numbers_.try_emplace(word, static_cast<char32_t>(numbers_.size())).first->second);
  }
  return numbers;
}

NGrams NGramsOf(std::u32string_view units, size_t length) {
  NGrams ngrams;
  for (size_t i = 0; i + length <= units.size(); ++i) ++ngrams[units.substr(i, length)];
  return ngrams;
}

}  // namespace evald
