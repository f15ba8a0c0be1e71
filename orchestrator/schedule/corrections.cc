#include "orchestrator/schedule/corrections.h"

#include "orchestrator/schedule/slice.h"

namespace evald {

void Corrections::Generated(size_t task, int64_t documents, double device_s, double longest_s,
                            OpenWork* work) {
  tasks_.at(task).estimate.SawGeneration(documents, device_s, longest_s);
  Saw(task, documents, work);
}

void Corrections::Scored(size_t task, int64_t documents, double score_s, OpenWork* work) {
  tasks_.at(task).estimate.SawScoring(documents, score_s);
  Saw(task, documents, work);
}

void Corrections::Saw(size_t task, int64_t documents, OpenWork* work) {
  Task& of = tasks_[task];
  of.untold += documents;
  if (static_cast<double>(of.untold) <
      kLearnShare * static_cast<double>(of.estimate.prior().documents))
    return;
  of.untold = 0;
  work->Expect(task, of.estimate.Now());
}

void Corrections::Overdue(size_t task, double seconds, OpenWork* work) {
  // Rounding must not turn away a call that comes exactly when the request is due.
  constexpr double kRounding = 1e-9;
  if (seconds < work->estimate(task).request_s * kOverdueGrowth * (1 - kRounding)) return;
  tasks_.at(task).estimate.SawUnfinished(seconds);
  work->Expect(task, Now(task));
}

}  // namespace evald
