#include "orchestrator/schedule/estimate.h"

#include <algorithm>

namespace evald {

void RunningEstimate::SawGeneration(int64_t documents, double device_s, double longest_s) {
  generated_ += static_cast<double>(documents);
  device_s_ += device_s;
  longest_s_ = std::max(longest_s_, longest_s);
}

void RunningEstimate::SawScoring(int64_t documents, double score_s) {
  scored_ += static_cast<double>(documents);
  score_s_ += score_s;
}

void RunningEstimate::SawUnfinished(double seconds) {
  unfinished_s_ = std::max(unfinished_s_, seconds);
}

double RunningEstimate::ended_request_s() const {
  // The longest request seen is a lower bound. A longer one that is expected may still come: it is
  // equally likely to be any of the documents. So it is given up as the share of documents grows
  // that were seen without it, and not as their number grows. What is little known is given up
  // sooner.
  if (prior_.request_s <= longest_s_) return longest_s_;
  const double seen =
      std::min(1.0, generated_ / std::max(1.0, static_cast<double>(prior_.documents)));
  const double still = weight_ * (1 - seen), absent = seen;
  if (still + absent <= 0) return prior_.request_s;
  return longest_s_ + (prior_.request_s - longest_s_) * still / (still + absent);
}

TaskEstimate RunningEstimate::Now() const {
  TaskEstimate now = prior_;
  now.device_s = device_s();
  now.score_s = (weight_ * prior_.score_s + score_s_) / (weight_ + scored_);
  now.doubt = 1 + (prior_.doubt - 1) * weight_ / (weight_ + generated_);
  now.request_s = std::max(ended_request_s(), unfinished_s_);
  return now;
}

}  // namespace evald
