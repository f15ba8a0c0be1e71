#include "metrics/job.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "metrics/judged_job.h"
#include "metrics/line_index.h"
#include "metrics/process_results.h"
#include "metrics/scorer.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// CPU time of this process and of the children that it has waited for.
double CpuSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    seconds += Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  }
  return seconds;
}

// Reads the run's own files. A fault in them is damage, which another attempt or --resume mends.
// Only faults of the task itself are input errors.
template <typename Work>
auto Reading(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) throw;
    throw Error(ErrorKind::kInfrastructure, e.message(), e.remedy());
  }
}

[[noreturn]] void RefuseLongScore(const protocol::Job& job, int64_t document) {
  try {
    ThrowTooLongScore();
  } catch (Error& e) {
    throw e.AddContext(fmt::format("task '{}', document {}", job.task, document));
  }
}

// The answers to a document are in memory together: a filter may count them.
void RequireShortAnswers(const protocol::Job& job, int64_t document, uint64_t bytes) {
  if (bytes <= kDocumentBytesMax) return;
  throw Error(ErrorKind::kInput,
              fmt::format("task '{}', document {}: its answers take {}, expected at most {}",
                          job.task, document, HumanBytes(bytes), HumanBytes(kDocumentBytesMax)),
              "ask for fewer repeats, or for shorter answers (max_gen_toks)");
}

bool NeedsCode(const TaskDefinition& task) {
  if (task.unsafe_code) return true;
  if (task.command) return false;  // the program has run already
  for (const MetricSpec& metric : task.metrics) {
    const bool runs = !metric.function.empty() && metric.function != kJudgeFunction;
    if (runs && !IsOwnFunction(metric.function)) return true;
  }
  return false;
}

// A prepared task lies in <cache>/prepared/<key>.
void UseCacheOf(const std::filesystem::path& prepared, MathComparer* math) {
  const std::filesystem::path tasks = prepared.parent_path();
  if (tasks.filename() == "prepared") math->KeepIn(tasks.parent_path());
}

// The panel for a task with a judge; else null.
std::unique_ptr<JudgePanel> PanelFor(const protocol::Job& job, const TaskDefinition& task,
                                     const std::filesystem::path& judge_cache) {
  if (!UsesJudge(task)) return nullptr;
  if (job.judge.is_null())
    throw Error(ErrorKind::kInternal, fmt::format("task '{}': no judge is named", job.task));
  return std::make_unique<JudgePanel>(
      JudgeSettingsFromJson(job.judge, fmt::format("the judge of task '{}'", job.task)),
      JudgePanel::Place{judge_cache, job.run, job.task});
}

// Scores one document after the other.
bool ScoreInOrder(const protocol::Job& job, const JudgedWork& work, const std::atomic<bool>& stop,
                  std::atomic<int64_t>* done, protocol::JobDone* result) {
  const int64_t begun_us = MonotonicMicros();
  for (int64_t document = job.first; document < job.end; ++document) {
    if (stop) return false;
    if (document > job.first && MonotonicMicros() - begun_us >= work.time.count()) {
      result->end = document;
      break;
    }
    work.append(work.line(document));
    FailPoint("metric.after_line");
    ++*done;
  }
  return true;
}

}  // namespace

bool RunJob(const protocol::Job& job, const CodeRunnerSource& code_runner,
            const TaskCodeSource& task_code, const std::atomic<bool>& stop,
            std::atomic<int64_t>* done, protocol::JobDone* result, std::chrono::microseconds time,
            MathComparer* math, const std::filesystem::path& judge_cache) {
  const double begun = CpuSeconds();
  const int64_t begun_us = MonotonicMicros();
  const PreparedTask prepared = Reading([&] { return PreparedTask(job.prepared); });
  const TaskDefinition task =
      Reading([&] { return TaskFromJson(prepared.task(), job.prepared + "/task.json"); });
  if (job.first < 0 || job.end > prepared.document_count() || job.first >= job.end) {
    throw Error(ErrorKind::kInput,
                fmt::format("documents [{}, {}) of '{}', which has {}", job.first, job.end,
                            job.task, prepared.document_count()));
  }
  if (math != nullptr) UseCacheOf(job.prepared, math);
  const std::unique_ptr<JudgePanel> panel = PanelFor(job, task, judge_cache);
  const Scorer scorer(task, NeedsCode(task) ? code_runner() : nullptr,
                      task_code ? task_code(prepared) : nullptr, math, panel.get());
  if (!job.hash.empty()) CheckHash(job.generations, job.hash);
  const GenerationReader generations =
      Reading([&] { return GenerationReader(job.generations, job.first, job.end); });
  PendingFile scores(job.file);
  result->end = 0;
  JudgedWork work;
  work.time = time;
  work.line = [&](int64_t doc_id) {
    const PreparedDocument document = Reading([&] { return prepared.Document(doc_id); });
    const int requests = scorer.Requests(document);
    RequireShortAnswers(job, doc_id, generations.Bytes(doc_id));
    auto answers = Reading([&] { return generations.Read(doc_id, requests, prepared.repeats()); });
    ScoredDocument score = scorer.Score(document, std::move(answers));
    if (panel) score.judge = panel->Usage();
    std::string line = ToLine(ToJson(score));
    if (line.size() > kScoreBytesMax) RefuseLongScore(job, doc_id);
    return line;
  };
  work.append = [&](const std::string& line) {
    scores.Append(line);
    scores.Append("\n");
  };
  const bool whole = panel ? ScoreJudged(job, work, panel.get(), stop, done, result)
                           : ScoreInOrder(job, work, stop, done, result);
  if (!whole) {
    scores.Discard();
    return false;
  }
  scores.Commit();
  result->job = job.job;
  result->attempt = job.attempt;
  result->file = job.file;
  result->hash = scores.HashHex();
  result->bytes = scores.bytes();
  result->cpu_seconds = CpuSeconds() - begun;
  result->slot_seconds = static_cast<double>(MonotonicMicros() - begun_us) / 1e6;
  return true;
}

}  // namespace evald
