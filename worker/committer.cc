#include "worker/committer.h"

#include "base/fail_point.h"
#include "evald/error.h"

namespace evald {

Committer::Committer(Sender send) : send_(std::move(send)), thread_([this] { Work(); }) {}

Committer::~Committer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Committer::Queue(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void Committer::Work() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

void Committer::Commit(std::shared_ptr<TrialState> trial, OpenTrial::Complete slice) {
  // std::function needs a copyable capture.
  Queue([this, trial, shared = std::make_shared<OpenTrial::Complete>(std::move(slice))] {
    if (trial->over) return;
    try {
      const protocol::Slice& spec = shared->spec;
      const GenerationsSummary summary = shared->file->Commit();
      send_(protocol::SliceDone{trial->trial, trial->attempt, spec.task, spec.first, spec.end,
                                spec.file, summary.hash, summary.bytes, summary.requests,
                                summary.truncated, summary.tokens_in, summary.tokens_out,
                                shared->device_seconds, shared->longest_seconds, summary.salvaged});
      FailPoint("worker.after_slice_done");
    } catch (const Error& e) {
      trial->over = true;
      send_(protocol::TrialFailed{trial->trial, trial->attempt, true, e.what()});
    }
  });
}

void Committer::FinishTrial(std::shared_ptr<TrialState> trial, double device_seconds) {
  Queue([this, trial, device_seconds] {
    if (trial->over) return;
    FailPoint("worker.before_trial_done");
    send_(protocol::TrialDone{trial->trial, trial->attempt, device_seconds});
    FailPoint("worker.after_trial_done");
  });
}

void Committer::AnswerRevoke(const protocol::Revoke& revoke) {
  Queue([this, revoke] { send_(protocol::Revoked{revoke.trial, revoke.attempt}); });
}

}  // namespace evald
