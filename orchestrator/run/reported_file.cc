#include "orchestrator/run/reported_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/file_hash.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/aggregate.h"
#include "metrics/line_index.h"
#include "metrics/own_aggregations.h"
#include "metrics/scorer.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/statistics.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace {

// The text of the numbers that are kept of a document until its task is finished: some for each
// filter, and some for each of its requests.
constexpr size_t kNumbersBytes = 4096;
constexpr size_t kNumbersBytesPerRequest = 100;

// Why the file does not have the reported content; "" if it has.
std::string WhyOtherContent(const ReportedFile& file) {
  std::error_code error;
  const auto bytes = std::filesystem::is_regular_file(file.path, error)
                         ? std::filesystem::file_size(file.path, error)
                         : 0;
  if (error || bytes == 0) return "there is no such file, or it is empty";
  if (bytes != file.bytes) return fmt::format("it has {} bytes, not {}", bytes, file.bytes);
  return HashOfFile(file.path).hash == file.hash ? "" : "it has another content than was reported";
}

[[noreturn]] void Refuse(const std::string& why) { throw Error(ErrorKind::kInput, why); }

// Bounds the index of the file, before it is made. Lines of documents that were given back may be
// among the others.
void RequireFewLines(const ReportedFile& file, int64_t expected) {
  const MappedFile mapped(file.path);
  const std::string_view text = mapped.view();
  const int64_t most = 2 * expected + 1000;
  const int64_t lines = std::count(text.begin(), text.end(), '\n');
  if (lines > most) Refuse(fmt::format("it has {} lines, expected about {}", lines, expected));
}

class SoundFile {
 public:
  SoundFile(const ReportedFile& file, const std::function<bool()>& stopped)
      : file_(file),
        stopped_(stopped),
        prepared_(file.prepared),
        scorer_(file.definition, nullptr),
        own_(HasOwnAggregations(file.definition)) {}

  void RequireGenerations() const {
    int64_t requests = 0;
    for (int64_t document = file_.first; document < file_.end; ++document)
      requests += AnswersOf(document);
    RequireFewLines(file_, requests);
    const GenerationReader reader(file_.path, file_.first, file_.end);
    const RequestKind kind = OutputTypeOf(file_.definition.output_type).kind;
    for (int64_t document = file_.first; document < file_.end; ++document) {
      ThrowIfStopped(stopped_);
      reader.ForEach(document, RequestsOf(document), file_.definition.repeats,
                     [&](const Generation& answer) {
                       ThrowIfStopped(stopped_);
                       if (answer.kind == kind) return;
                       Refuse(fmt::format("document {} was answered as {}, expected {}", document,
                                          ToString(answer.kind), ToString(kind)));
                     });
    }
  }

  void RequireScores() const {
    RequireFewLines(file_, file_.end - file_.first);
    const ScoreReader reader(file_.path, file_.first, file_.end);
    const auto look = [&](int64_t document) {
      ThrowIfStopped(stopped_);
      RequireScore(reader.ReadNumbers(document));
    };
    for (const int64_t document : file_.documents) look(document);
    if (!file_.documents.empty()) return;
    for (int64_t document = file_.first; document < file_.end; ++document) look(document);
  }

 private:
  int RequestsOf(int64_t document) const { return scorer_.Requests(prepared_.Document(document)); }
  int64_t AnswersOf(int64_t document) const {
    return int64_t{RequestsOf(document)} * file_.definition.repeats;
  }

  void RequireScore(const ScoredDocument& score) const {
    const auto& pipelines = file_.definition.filters;
    const bool same = std::equal(
        pipelines.begin(), pipelines.end(), score.filters.begin(), score.filters.end(),
        [](const FilterPipeline& a, const FilterScore& b) { return a.name == b.filter; });
    if (!same)
      Refuse(fmt::format("document {} is not scored under the task's filters", score.doc_id));
    const size_t most =
        kNumbersBytes + kNumbersBytesPerRequest * static_cast<size_t>(AnswersOf(score.doc_id));
    for (const FilterScore& filter : Kept(score).filters) {
      const size_t bytes = ToLine(filter.metrics).size() + ToLine(filter.python).size() +
                           ToLine(Json(filter.fallbacks)).size();
      if (bytes > most) {
        Refuse(fmt::format("the metrics of document {} have {} bytes, expected at most {}",
                           score.doc_id, bytes, most));
      }
    }
    for (const FilterScore& filter : score.filters) {
      for (const auto& [metric, value] : filter.metrics.items())
        RequireValue(score.doc_id, metric, value);
    }
  }

  // What is kept until the task is finished. Texts, and values that go to the task's own
  // aggregations, which may be texts, are not: ReadNumbers bounds them.
  ScoredDocument Kept(ScoredDocument score) const {
    if (own_) DropItems(file_.definition, &score);
    DropTexts(file_.definition, &score);
    return score;
  }

  // Whether the metric's aggregation takes the value.
  void RequireValue(int64_t document, const std::string& metric, Json value) const {
    const std::string aggregation = AggregationFor(file_.definition, metric);
    if (own_ && !OwnAggregation(aggregation).empty()) return;  // takes anything
    const bool pair = value.is_array() && value.size() == 2 && !TakesTexts(aggregation);
    if (pair && value[1] == 0) value[1] = 1;  // nothing to divide by, in this document alone
    if (pair && value[1].is_array()) {        // a number for each choice
      const auto requests = static_cast<size_t>(RequestsOf(document)), numbers = value[1].size();
      if (numbers != requests && 2 * numbers != requests) {
        Refuse(fmt::format("metric '{}' of document {} has {} numbers for {} requests", metric,
                           document, numbers, requests));
      }
    }
    Aggregate(aggregation, {&value}, 0);
  }

  const ReportedFile& file_;
  const std::function<bool()>& stopped_;
  const PreparedTask prepared_;
  const Scorer scorer_;
  const bool own_;  // the task has aggregations of its own
};

}  // namespace

std::string WhyNotSound(const ReportedFile& file, const std::function<bool()>& stopped) {
  try {
    const std::string other = WhyOtherContent(file);
    if (!other.empty()) return other;
    const SoundFile sound(file, stopped);
    if (file.scores) {
      sound.RequireScores();
    } else {
      sound.RequireGenerations();
    }
    return "";
  } catch (const Error& e) {
    ThrowIfStopped(stopped);
    return e.message();
  }
}

}  // namespace evald
