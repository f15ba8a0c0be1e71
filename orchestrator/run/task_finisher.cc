#include "orchestrator/run/task_finisher.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <numeric>

#include "base/cores.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/aggregate.h"
#include "metrics/line_index.h"
#include "metrics/own_aggregations.h"
#include "metrics/own_filters.h"
#include "metrics/scorer.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/statistics.h"
#include "orchestrator/report/results.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace {

using Stopped = std::function<bool()>;

// Readers of those of a run's files that a task's documents lie in.
template <typename Reader>
class Readers {
 public:
  Readers(const std::vector<FileAndHash>& files, const std::vector<size_t>& used,
          const Stopped& stopped) {
    for (const size_t file : used) {
      if (file == FinishedTask::kNoFile || open_.count(file) > 0) continue;
      ThrowIfStopped(stopped);
      CheckHash(files.at(file).path, files.at(file).hash);
      open_.try_emplace(file, files.at(file).path);
    }
  }
  const Reader& operator[](size_t file) const { return open_.at(file); }

 private:
  std::map<size_t, Reader> open_;
};

Json FallbacksOf(const std::vector<ScoredDocument>& scores) {
  std::map<std::string, Fallbacks> counts;
  for (const ScoredDocument& score : scores) {
    for (const FilterScore& filter : score.filters) {
      for (const auto& [why, count] : filter.fallbacks) counts[filter.filter][why] += count;
    }
  }
  return counts.empty() ? Json::object() : Json(counts);
}

// Texts that a task's corpus metrics take, all documents together.
constexpr uint64_t kTextBytesMax = uint64_t{256} << 20;

struct Gathered {
  std::vector<ScoredDocument> numbers;  // one for each document
  std::atomic<uint64_t> text_bytes{0};  // beyond kTextBytesMax, texts are left out
  int64_t undefined = 0;                // documents with an answer that has undefined numbers
  int64_t texts = 0, truncated = 0;     // generated answers, and those that ran into max_gen_toks
};

// Writes the samples to disk and returns their hash.
std::string PutSamples(const FinishedTask& task, const Stopped& stopped, Gathered* out) {
  const PreparedTask prepared(task.prepared);
  const Scorer scorer(task.definition, nullptr);
  const Readers<ScoreReader> scores(task.score_files, task.score_of, stopped);
  const Readers<GenerationReader> generations(task.generation_files, task.generation_of, stopped);
  const bool own = HasOwnAggregations(task.definition);
  const std::vector<MetricSpec>& metrics = task.definition.metrics;
  const bool has_texts = std::any_of(metrics.begin(), metrics.end(), [](const MetricSpec& spec) {
    return TakesTexts(spec.aggregation);
  });
  out->numbers.resize(task.score_of.size());

  // By document; written by one thread at a time, and once for each filter
  std::vector<char> undefined(task.score_of.size(), 0);
  std::vector<int32_t> texts(task.score_of.size(), 0), truncated(task.score_of.size(), 0);

  SampleSource source;
  source.score = [&](int64_t document) -> std::optional<ScoredDocument> {
    ThrowIfStopped(stopped);
    const auto at = static_cast<size_t>(document);
    if (task.score_of.at(at) == FinishedTask::kNoFile) return std::nullopt;
    ScoredDocument score = scores[task.score_of.at(at)].ReadNumbers(document);
    if (!out->numbers[at].filters.empty()) return score;
    ScoredDocument kept = score;
    if (own) DropItems(task.definition, &kept);
    if (has_texts) {
      ScoredDocument without_texts = kept;
      const uint64_t bytes = DropTexts(task.definition, &without_texts);
      if ((out->text_bytes += bytes) > kTextBytesMax) kept = std::move(without_texts);
    }
    out->numbers[at] = std::move(kept);
    return score;
  };
  source.filtered = [&](int64_t document, const std::string& filter) {
    return scores[task.score_of.at(static_cast<size_t>(document))].Filtered(document, filter);
  };
  source.detail = [&](int64_t document) {
    return scores[task.score_of.at(static_cast<size_t>(document))].Detail(document);
  };
  source.generations = [&](int64_t document, const std::function<void(Generation&&)>& visit) {
    const int requests = scorer.Requests(prepared.Document(document));
    const auto at = static_cast<size_t>(document);
    undefined[at] = 0;
    texts[at] = truncated[at] = 0;
    generations[task.generation_of.at(at)].ForEach(
        document, requests, task.definition.repeats, [&](Generation&& answer) {
          ThrowIfStopped(stopped);
          if (IsUndefined(answer)) undefined[at] = 1;
          texts[at] += answer.kind == RequestKind::kGenerateUntil ? 1 : 0;
          truncated[at] += IsTruncatedAnswer(answer) ? 1 : 0;
          visit(std::move(answer));
        });
  };
  source.bytes = [&](int64_t document) -> uint64_t {
    const auto at = static_cast<size_t>(document);
    if (task.score_of.at(at) == FinishedTask::kNoFile) return 0;
    return generations[task.generation_of.at(at)].Bytes(document) +
           scores[task.score_of.at(at)].Bytes(document);
  };
  std::string hash = WriteSamples(task.samples, task.definition, prepared, source, UsableCores());
  out->undefined = std::count(undefined.begin(), undefined.end(), 1);
  out->texts = std::accumulate(texts.begin(), texts.end(), int64_t{0});
  out->truncated = std::accumulate(truncated.begin(), truncated.end(), int64_t{0});
  return hash;
}

// Calls work that only reads files of the run. If one is damaged, this is not the task's fault.
template <typename Work>
void ReadingOwnFiles(Work work) {
  try {
    work();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) throw;
    throw Error(ErrorKind::kInfrastructure, e.message(), e.remedy());
  }
}

// A process with the values for the task's own aggregations; null if it has none.
std::unique_ptr<OwnAggregations> OwnOf(const FinishedTask& task, const Stopped& stopped) {
  if (!HasOwnAggregations(task.definition)) return nullptr;
  auto own = std::make_unique<OwnAggregations>(task.definition, PreparedTask(task.prepared),
                                               task.code, stopped);
  const Readers<ScoreReader> scores(task.score_files, task.score_of, stopped);
  for (size_t document = 0; document < task.score_of.size(); ++document) {
    ScoredDocument score;
    ReadingOwnFiles([&] {
      score = scores[task.score_of[document]].ReadNumbers(static_cast<int64_t>(document));
    });
    own->Add(score);
  }
  return own;
}

// Whether the task's own functions run once more when its documents are scored.
bool RunsCodeAtEnd(const TaskDefinition& task) {
  return HasOwnAggregations(task) || HasOwnFilters(task);
}

// Throws Error(kInput) if a filter of the task's own gives something else for all documents
// together.
void CheckOwnFilters(const FinishedTask& task, const Stopped& stopped) {
  if (!HasOwnFilters(task.definition)) return;
  const PreparedTask prepared(task.prepared);
  OwnFilterCheck check(task.definition, prepared, task.code, stopped);
  const Readers<ScoreReader> scores(task.score_files, task.score_of, stopped);
  check.Run([&](int64_t document) {
    ThrowIfStopped(stopped);
    ScoredDocument score;
    ReadingOwnFiles(
        [&] { score = scores[task.score_of[static_cast<size_t>(document)]].Read(document); });
    return score;
  });
}

}  // namespace

TaskResult AggregateFinished(const FinishedTask& task, const Stopped& stopped) {
  ThrowIfStopped(stopped);
  TaskResult result;
  Gathered found;
  ReadingOwnFiles([&] { result.hash = PutSamples(task, stopped, &found); });
  if (found.text_bytes > kTextBytesMax) {
    throw Error(ErrorKind::kInput,
                fmt::format("targets and answers of its corpus metrics have {} in all, expected at "
                            "most {}",
                            HumanBytes(found.text_bytes), HumanBytes(kTextBytesMax)));
  }
  CheckOwnFilters(task, stopped);
  const std::unique_ptr<OwnAggregations> own = OwnOf(task, stopped);
  result.entry =
      AggregateTask(task.definition, found.numbers, task.bootstrap_iters, stopped, own.get());
  result.fallbacks = FallbacksOf(found.numbers);
  result.undefined = found.undefined;
  result.texts = found.texts;
  result.truncated_answers = found.truncated;
  for (const ScoredDocument& score : found.numbers) {
    if (score.judge) result.judge += *score.judge;
  }
  return result;
}

std::shared_ptr<const SamplesSoFar> WriteSamplesSoFar(const FinishedTask& task,
                                                      const Stopped& stopped) {
  ThrowIfStopped(stopped);
  Gathered found;
  ReadingOwnFiles([&] { PutSamples(task, stopped, &found); });
  auto samples = std::make_shared<SamplesSoFar>();
  samples->file.reset(::open(task.samples.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!samples->file) ThrowErrno(task.samples, "opening", errno);
  std::filesystem::remove(task.samples);
  samples->documents = static_cast<int64_t>(task.score_of.size());
  samples->scored = samples->documents -
                    std::count(task.score_of.begin(), task.score_of.end(), FinishedTask::kNoFile);
  return samples;
}

void TaskFinisher::WriteSoFar(FinishedTask task, SamplesSoFarDone done) {
  auto samples = std::make_shared<std::shared_ptr<const SamplesSoFar>>();
  const std::string user = task.user;
  so_far_.Post(
      user,
      [this, task = std::move(task), samples] {
        *samples = WriteSamplesSoFar(
            task, [&] { return stopping_ || (task.cancel != nullptr && *task.cancel); });
      },
      [done = std::move(done), samples](const std::optional<Error>& error) {
        done(*samples, error);
      });
}

void TaskFinisher::Submit(FinishedTask task, std::function<void(TaskResult)> done,
                          std::function<void(const Error&)> failed) {
  auto result = std::make_shared<TaskResult>();
  const std::string user = task.user;
  FairThreads& threads = RunsCodeAtEnd(task.definition) ? own_ : threads_;
  threads.Post(
      user,
      [this, task = std::move(task), result] {
        *result = AggregateFinished(
            task, [&] { return stopping_ || (task.cancel != nullptr && *task.cancel); });
      },
      [done = std::move(done), failed = std::move(failed),
       result](const std::optional<Error>& error) {
        if (error) return failed(*error);
        done(std::move(*result));
      });
}

void TaskFinisher::Check(ReportedFile file, const std::string& user,
                         std::function<void(const std::string& why)> done) {
  auto why = std::make_shared<std::string>();
  checks_.Post(
      user,
      [this, file = std::move(file), why] {
        if (settled_) settled_(file.path);
        *why = WhyNotSound(file, [this] { return stopping_.load(); });
        std::error_code not_there;
        if (!why->empty())
          std::filesystem::rename(file.path, file.path.string() + ".damaged", not_there);
      },
      [done = std::move(done), why](const std::optional<Error>& error) {
        done(error ? error->what() : *why);
      });
}

}  // namespace evald
