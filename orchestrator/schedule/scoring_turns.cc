#include "orchestrator/schedule/scoring_turns.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace evald {
namespace {

constexpr double kUseHalfLifeSeconds = 600;

double Seconds(int64_t from, int64_t to) {
  return static_cast<double>(std::max<int64_t>(0, to - from)) / 1e6;
}

}  // namespace

// Ageing shrinks all users' seconds in one proportion, so it matters only beside jobs at work.
double ScoringTurns::SecondsOf(const std::string& user, int64_t now) const {
  const auto used = used_.find(user);
  double seconds = used == used_.end()
                       ? 0
                       : used->second * std::exp2(-Seconds(aged_, now) / kUseHalfLifeSeconds);
  for (const auto& [process, job] : at_work_) {
    if (job.user == user) seconds += Seconds(job.since, now);
  }
  return seconds;
}

std::optional<int64_t> ScoringTurns::Choose(const std::vector<DispatchRun>& runs,
                                            int64_t now) const {
  if (runs.empty()) return std::nullopt;
  std::map<std::string, double> seconds;
  for (const DispatchRun& run : runs) {
    if (seconds.count(run.user) == 0) seconds[run.user] = SecondsOf(run.user, now);
  }
  const auto rank = [&](const DispatchRun& run) {
    const auto turn = turns_.find(run.number);
    return std::tuple(-run.priority, seconds.at(run.user), turn == turns_.end() ? 0 : turn->second,
                      run.number);
  };
  return std::min_element(runs.begin(), runs.end(),
                          [&](const auto& a, const auto& b) { return rank(a) < rank(b); })
      ->number;
}

void ScoringTurns::Begin(const std::string& process, const DispatchRun& run, int64_t now) {
  End(process, now);
  at_work_[process] = {run.user, now};
  turns_[run.number] = ++turn_;
}

void ScoringTurns::End(const std::string& process, int64_t now) {
  const auto job = at_work_.find(process);
  if (job == at_work_.end()) return;
  const double aged = std::exp2(-Seconds(aged_, now) / kUseHalfLifeSeconds);
  for (auto& [user, seconds] : used_) seconds *= aged;
  std::erase_if(used_, [](const auto& user) { return user.second < 1e-3; });
  aged_ = std::max(aged_, now);
  used_[job->second.user] += Seconds(job->second.since, now);
  at_work_.erase(job);
}

}  // namespace evald
