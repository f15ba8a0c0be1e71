// Runs that have ended without their results, taken up once more.
#include <fmt/format.h>

#include "base/log.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/submission.h"

namespace evald {

// What it was submitted with holds; its folder insists on it.
void Service::ResumeEnded(const std::string& id, Done<Json> done) {
  try {  // on the caller's thread: reading may take a while
    std::optional<RunRow> row;
    {
      const std::lock_guard lock(reader_mutex_);
      row = service_store::FindRun(*reader_, id);
    }
    if (!row) throw Error(ErrorKind::kUsage, fmt::format("there is no run {}", id));
    if (row->state == "done") {
      throw Error(ErrorKind::kUsage, fmt::format("run {} is done: there is nothing to resume", id),
                  "submit it again for another run of the same");
    }
    auto config = std::make_shared<EvalConfig>(Configure(SubmissionOf(*row)));
    loop_.Post([this, row = *row, config, done = std::move(done)]() mutable {
      try {
        if (draining_) throw Error(ErrorKind::kInfrastructure, "the service is stopping; resume it later");
        if (queue_.Find(row.run) != nullptr) {
          throw Error(ErrorKind::kUsage, fmt::format("run {} is not over", row.run));
        }
        const Json resource = Resource(*TakeUpEnded(row, std::move(*config)));
        StartRuns();
        Publish();
        AnswerOnceOnDisk(std::move(done), resource);
      } catch (const Error& e) {
        done(e);
      }
    });
  } catch (const Error& e) {
    done(e);
  }
}

QueuedRun* Service::TakeUpEnded(const RunRow& row, EvalConfig config) {
  QueuedRun run = QueuedRunOf(row);
  run.config = std::move(config);
  run.directory = RunDirectory::Resume(run.config, row.output);
  log::Info("run {}: was {}, and is resumed", row.run, row.state);
  QueuedRun* queued = queue_.Add(std::move(run));
  SetState(queued, "queued");
  return queued;
}

}  // namespace evald
