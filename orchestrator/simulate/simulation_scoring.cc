// The metric pool: metric jobs of the run on the slots of all nodes.
#include <algorithm>

#include "orchestrator/simulate/simulation.h"

namespace evald {

void Simulation::ServeScoring() {
  while (run_.jobs().queued() > 0) {
    const auto slot = pool_.Begin();
    if (!slot) return;
    const MetricJob& job = scoring_[*slot] = run_.LeaseJob(*slot, micros()).value();
    const double seconds = static_cast<double>(job.documents.size()) * tasks_[job.task].score_s;
    Push(now_ + seconds, Kind::kScored, *slot, 0, job.job);
  }
}

void Simulation::OnScored(const Event& event) {
  const auto slot = static_cast<int>(event.a);
  if (slot >= pool_.slots()) return;  // lost with its node
  const MetricJob& job = scoring_[slot];
  pool_.End(slot);
  run_.JobDone(slot, job.job, job.job_attempt);
  if (decouplings_.use_priors) {
    const double seconds = static_cast<double>(job.documents.size()) * tasks_[job.task].score_s;
    run_.MeasuredScoring(job.task, job.documents.size(), seconds);
  }
  CountScored(job.task, job.documents);
  ServeScoring();
}

void Simulation::CountScored(size_t task, DocumentRange documents) {
  listed_.clear();
  for (int64_t i = documents.first; i < documents.end; ++i) listed_.push_back(i);
  run_.ScoresCommitted(task, listed_);
  scored_[task] = run_.scored(task);
  if (run_.task_finished(task)) result_.task_scored_s[task] = now_;
  result_.makespan_s = std::max(result_.makespan_s, now_);
}

}  // namespace evald
