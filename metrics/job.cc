#include "metrics/job.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/line_index.h"
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

bool NeedsCode(const TaskDefinition& task) {
  if (task.unsafe_code) return true;
  for (const MetricSpec& metric : task.metrics) {
    if (!metric.function.empty()) return true;
  }
  return false;
}

}  // namespace

bool RunJob(const protocol::Job& job, const CodeRunnerSource& code_runner,
            const std::atomic<bool>& stop, std::atomic<int64_t>* done, protocol::JobDone* result) {
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
  const Scorer scorer(task, NeedsCode(task) ? code_runner() : nullptr);
  if (!job.hash.empty()) CheckHash(job.generations, job.hash);
  const GenerationReader generations =
      Reading([&] { return GenerationReader(job.generations, job.first, job.end); });
  PendingFile scores(job.file);
  for (int64_t doc_id = job.first; doc_id < job.end; ++doc_id) {
    if (stop) {
      scores.Discard();
      return false;
    }
    const PreparedDocument document = Reading([&] { return prepared.Document(doc_id); });
    const int requests = scorer.Requests(document);
    const auto answers =
        Reading([&] { return generations.Read(doc_id, requests, prepared.repeats()); });
    const ScoredDocument score = scorer.Score(document, answers);
    scores.Append(ToLine(ToJson(score)) + "\n");
    FailPoint("metric.after_line");
    ++*done;
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
