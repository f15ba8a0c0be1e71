#include "orchestrator/simulate/score_pool.h"

namespace evald {

bool ScorePool::Begin(ScoreJob* job) {
  if (free_ == 0 || waiting_.empty()) return false;
  *job = waiting_.top().job;
  waiting_.pop();
  --free_;
  return true;
}

}  // namespace evald
