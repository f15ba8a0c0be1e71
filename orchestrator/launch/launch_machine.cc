#include "orchestrator/launch/launch_machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace evald {
namespace {

constexpr double kDay_s = 86400;
constexpr double kPauseMost_s = 1800;
constexpr double kSurplus_s = 30;         // before waiting jobs that are no longer needed end
constexpr double kStopAgain_s = 60;       // before the launcher is told once more to end a job
constexpr double kReplacedWithin_s = 30;  // a node that has failed: by then another is asked for
constexpr int kFailuresOfNodeMax = 2;     // in a row, before a node is excluded
constexpr double kNamedWithin = 2.5;      // lists until the node of a job is known
constexpr int kMissedMin = 2;             // lists without a job, before it counts as lost
constexpr double kLearned = 0.3;          // the share of the newest measurement in an average

using State = NodeJob::State;

std::string Named(const NodeJob& job) {
  return job.job.empty() ? fmt::format("job '{}'", job.name)
                         : fmt::format("job {} ('{}')", job.job, job.name);
}

}  // namespace

// ---- looking

const LaunchMachine::Job* LaunchMachine::Find(int64_t number) const {
  const auto job = jobs_.find(number);
  return job == jobs_.end() ? nullptr : &job->second;
}

LaunchMachine::Job* LaunchMachine::ByName(const std::string& name) {
  for (auto& [number, job] : jobs_) {
    if (job.record.name == name) return &job;
  }
  return nullptr;
}

// Whether the job is, or will be, a node that works.
bool LaunchMachine::Lives(const Job& job) const {
  const State state = job.record.state;
  return (state == State::kIntended || state == State::kSubmitted) && !job.host.leaving;
}

int LaunchMachine::Count(bool pending_only) const {
  return static_cast<int>(std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    const Job& job = entry.second;
    return Lives(job) && (!pending_only || job.record.started_at == 0);
  }));
}

int LaunchMachine::Here() const {
  return static_cast<int>(std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    return Lives(entry.second) && entry.second.host.connected;
  }));
}

double LaunchMachine::NodeHours(double now) const {
  double seconds = 0;
  for (const auto& [number, job] : jobs_) {
    const NodeJob& record = job.record;
    seconds += record.used_s;
    if (record.started_at == 0) continue;
    const double end = record.ended_at > 0 ? record.ended_at : now;
    seconds += std::max(0.0, end - std::max(record.started_at, now - kDay_s));
  }
  return seconds / 3600;
}

std::vector<std::string> LaunchMachine::Problems(double now) const {
  std::vector<std::string> problems;
  if (silent_since_ > 0) {
    problems.push_back(fmt::format("no answer since {:%F %T} UTC: {}",
                                   fmt::gmtime(static_cast<std::time_t>(silent_since_)), silence_));
  }
  for (const auto& [number, job] : jobs_) {
    const bool told = silent_since_ == 0 && job.record.state == State::kStopping;
    if (told && !job.stop_failure.empty())
      problems.push_back(fmt::format("{} does not end: {}", Named(job.record), job.stop_failure));
  }
  const bool said = std::any_of(excluded_.begin(), excluded_.end(),
                                [&](const auto& node) { return node.second == failure_; });
  if (!failure_.empty() && !said) problems.push_back(failure_);
  for (const auto& [node, failures] : failures_) {
    const bool known = excluded_.count(node) > 0 || failures.last == failure_;
    if (failures.here && !known) problems.push_back(failures.last);
  }
  const double hours = NodeHours(now);
  if (limits_.node_hours_per_day > 0 && hours >= limits_.node_hours_per_day) {
    problems.push_back(
        fmt::format("{:.1f} of {:g} node hours of the last 24 hours are used; no "
                    "job is submitted",
                    hours, limits_.node_hours_per_day));
  }
  for (const auto& [node, why] : excluded_)
    problems.push_back(fmt::format("node {} is not asked for: {}", node, why));
  return problems;
}

bool LaunchMachine::MoreMayCome(double now) const {
  if (stopped_) return false;
  if (Count(false) > Here()) return true;
  // Another node takes the place of one that can compute nothing, once its devices have gone.
  const bool replaced = std::any_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    return entry.second.host.connected && !entry.second.host.broken.empty();
  });
  return !refused_ && (target_ > Count(false) || replaced || now - failed_at_ < kReplacedWithin_s);
}

std::string LaunchMachine::Hopeless() const {
  const bool lost = refused_ || (failed_ >= limits_.nodes_max && Count(false) == 0);
  return !came_ && lost ? failure_ : "";
}

// ---- the life of a job

void LaunchMachine::Begin(double now) {
  Job job;
  job.record.number = ++last_number_;
  job.record.name = limits_.prefix + std::to_string(last_number_);
  job.record.intended_at = now;
  job.submitting = true;
  Push(Order::Kind::kSubmit, job.record);
  jobs_.emplace(last_number_, std::move(job));
}

void LaunchMachine::Stop(Job* job, const std::string& why, double now) {
  if (job->record.state == State::kOver || job->record.state == State::kStopping) return;
  job->record.state = State::kStopping;
  job->record.why = why;
  job->stop_asked_at = now;
  Push(Order::Kind::kStop, job->record);
}

void LaunchMachine::End(Job* job, const std::string& why, double now) {
  NodeJob& record = job->record;
  if (record.why.empty() || record.state != State::kStopping) record.why = why;
  record.state = State::kOver;
  record.ended_at = now;
  job->stop_failure.clear();
  if (job->agent_came && !job->failed) failures_.erase(record.node);
  Push(Order::Kind::kSave, record);
}

// A job that brought no agent, or one whose devices compute nothing.
// `at_fault`: the failure counts against the node.
void LaunchMachine::NoteFailure(Job* job, const std::string& why, double now, bool at_fault) {
  const std::string& node = job->record.node;
  const std::string what =
      fmt::format("{}{}: {}", Named(job->record), node.empty() ? "" : " on " + node, why);
  if (!node.empty()) {
    Failures& failures = failures_[node];
    failures = {failures.in_a_row + (at_fault ? 1 : 0), job->agent_came, what};
    const bool known = excluded_.count(node) > 0;
    if (failures.in_a_row >= kFailuresOfNodeMax) {
      excluded_[node] = what;
      if (!known) ExcludeAnew();
    }
  }
  job->failed = true;
  failed_at_ = now;
  ++failed_;
  BackOff(what, now);
  // An agent that was there, or was turned away, has said why itself.
  if (!job->agent_came && job->host.refused.empty()) Push(Order::Kind::kReadLog, job->record);
}

// Why a job has brought no agent.
std::string LaunchMachine::NotCome(const Job& job, const std::string& otherwise) const {
  return job.host.refused.empty() ? otherwise : "its agent is refused: " + job.host.refused;
}

void LaunchMachine::Release(const std::string& node) {
  failures_.erase(node);
  if (excluded_.erase(node) == 0) return;
  ExcludeAnew();
  pause_s_ = try_at_ = 0;  // a person has looked, so the next job need not wait
}

// Jobs that wait were submitted with the nodes that were excluded then.
void LaunchMachine::ExcludeAnew() {
  for (const auto& [number, job] : jobs_) {
    const bool waits = Lives(job) && job.record.started_at == 0 && !job.record.job.empty();
    if (waits) Push(Order::Kind::kExclude, job.record);
  }
}

void LaunchMachine::BackOff(const std::string& why, double now) {
  pause_s_ = pause_s_ == 0 ? limits_.retry_s : std::min(kPauseMost_s, 2 * pause_s_);
  try_at_ = now + pause_s_;
  failure_ = why;
}

// The launcher cannot be reached. Nothing is submitted until it answers a question.
void LaunchMachine::Silent(const std::string& why, double now) {
  if (silent_since_ == 0) silent_since_ = now;
  silence_ = why;
}

// ---- what the launcher says

void LaunchMachine::Restored(const std::vector<NodeJob>& jobs,
                             std::map<std::string, std::string> excluded, double now) {
  excluded_ = std::move(excluded);
  for (const NodeJob& record : jobs) {
    last_number_ = std::max(last_number_, record.number);
    Job job;
    job.record = record;
    job.agent_due_from = now;
    job.agent_came = record.started_at > 0;
    jobs_.emplace(record.number, std::move(job));
  }
}

void LaunchMachine::Submitted(int64_t number, const SubmitAnswer& answer, double now) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  job.submitting = false;
  job.answered_at = now;
  if (answer.outcome == SubmitAnswer::Outcome::kRefused) {
    if (answer.passing) {
      Silent(answer.why, now);
      return End(&job, answer.why, now);
    }
    refused_ = true;
    BackOff(fmt::format("{} is refused: {}", Named(job.record), answer.why), now);
    return End(&job, answer.why, now);
  }
  if (answer.outcome == SubmitAnswer::Outcome::kUnknown) {
    BackOff(fmt::format("whether {} was submitted is not known: {}", Named(job.record), answer.why),
            now);
    return;  // the list tells
  }
  job.record.job = answer.job;
  if (job.record.state == State::kStopping) return Push(Order::Kind::kStop, job.record);
  job.record.state = State::kSubmitted;
  Push(Order::Kind::kSave, job.record);
}

void LaunchMachine::StopFailed(int64_t number, const std::string& why, double now) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end() || found->second.record.state != State::kStopping) return;
  found->second.stop_asked_at = now;
  found->second.stop_failure = why;
}

void LaunchMachine::ListFailed(const std::string& why, double now) {
  listing_ = false;
  list_at_ = now + limits_.list_every_s;
  Silent(why, now);
}

void LaunchMachine::Listed(const std::vector<ListedJob>& jobs, double asked_at, double now) {
  listing_ = false;
  list_at_ = now + limits_.list_every_s;
  silent_since_ = 0;
  std::map<int64_t, bool> shown;
  for (const ListedJob& listed : jobs) {
    if (!listed.name.starts_with(limits_.prefix)) continue;
    Job* job = ByName(listed.name);
    const bool over = listed.state == ListedJob::State::kOver;
    const bool another =
        job != nullptr && !job->record.job.empty() && job->record.job != listed.job;
    if (job == nullptr || another || job->record.state == State::kOver) {
      NodeJob unknown;
      unknown.job = listed.job;
      unknown.name = listed.name;
      if (!over) StopNobodys(unknown, now);
      continue;
    }
    shown[job->record.number] = true;
    OnListed(job, listed, now);
  }
  for (auto& [number, job] : jobs_) {
    const bool told = !job.submitting && job.answered_at <= asked_at;
    if (job.record.state != State::kOver && told && !shown[number]) OnMissing(&job, now);
  }
}

// A job that is none of these jobs, but bears such a name.
void LaunchMachine::StopNobodys(const NodeJob& job, double now) {
  std::erase_if(nobodys_, [&](const auto& told) { return now - told.second >= kStopAgain_s; });
  if (nobodys_.emplace(job.job, now).second) Push(Order::Kind::kStopJob, job);
}

void LaunchMachine::OnListed(Job* job, const ListedJob& listed, double now) {
  NodeJob& record = job->record;
  const NodeJob before = record;
  job->listed = listed;
  job->missed = 0;
  job->missing_since = 0;
  record.job = listed.job;
  if (record.state == State::kIntended) record.state = State::kSubmitted;
  // A job may begin and end between two lists.
  if (listed.state != ListedJob::State::kPending && !listed.node.empty()) record.node = listed.node;
  if (listed.state == ListedJob::State::kRunning) {
    if (record.started_at == 0) {
      record.started_at = now;
      job->agent_due_from = now;
    }
  } else if (listed.state == ListedJob::State::kPending && record.started_at > 0 &&
             !job->host.connected) {  // requeued: it starts again, under the same name
    record.used_s += now - record.started_at;
    record.started_at = 0;
    job->agent_came = false;
  }
  const bool over = listed.state == ListedJob::State::kOver;
  if (!over) job->over_since = 0;
  if (over && job->over_since == 0) job->over_since = now;
  // An agent that stays although its job is over is cut off after a while.
  const bool stays = job->host.connected && now - job->over_since < limits_.agent_patience_s;
  if (over && !stays) {
    const std::string why = fmt::format("the launcher says {}", listed.word);
    if (!job->agent_came && record.state != State::kStopping)
      NoteFailure(job, NotCome(*job, "its agent has not come; " + why), now);
    return End(job, why, now);
  }
  // The launcher, which answers again, has not heard that it is to end the job.
  if (record.state == State::kStopping && !job->stop_failure.empty()) StopOnceMore(job, now);
  if (!(record == before)) Push(Order::Kind::kSave, record);
}

void LaunchMachine::OnMissing(Job* job, double now) {
  if (job->missing_since == 0) job->missing_since = now;
  ++job->missed;
  if (job->host.connected || job->missed < kMissedMin) return;
  // Of a job that is told to end, an absence says enough.
  const bool stopping = job->record.state == State::kStopping;
  if (!job->stop_failure.empty()) return StopOnceMore(job, now);
  if (!stopping && now - job->missing_since < limits_.unlisted_patience_s) return;
  if (!stopping) Push(Order::Kind::kStop, job->record);  // whatever bears its name
  const bool began = !job->record.job.empty();           // else nothing was ever there
  // Said, and no reason to wait longer: the launcher may have lost the job with its own memory.
  if (!stopping && began && !job->agent_came) {
    failure_ = fmt::format("{}: its agent has not come, and the launcher does not show it any more",
                           Named(job->record));
  }
  End(job, "the launcher does not show it any more", now);
}

// ---- agents

void LaunchMachine::HostIs(int64_t number, const NodeHost& host, double now) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  const NodeHost before = std::exchange(job.host, host);
  if (job.record.state == State::kOver) return;
  if (host.connected && !job.agent_came) OnAgentCame(&job, now);
  if (!host.connected && before.connected) job.agent_due_from = now;
  if (!host.connected || host.busy) job.idle_since = 0;
  if (host.connected && !host.busy && job.idle_since == 0) job.idle_since = now;
  if (!host.connected || host.broken.empty()) {
    job.broken_since = 0;
  } else if (job.broken_since == 0) {
    job.broken_since = now;
  }
}

void LaunchMachine::OnAgentCame(Job* job, double now) {
  NodeJob& record = job->record;
  job->agent_came = true;
  came_ = true;
  job->idle_since = now;
  if (record.started_at == 0) record.started_at = now;
  if (record.state == State::kIntended) record.state = State::kSubmitted;
  Push(Order::Kind::kSave, record);
  costs_.devices = std::max(1, job->host.devices);
  if (record.intended_at > 0)
    costs_.start_s += kLearned * (now - record.intended_at - costs_.start_s);
  if (const auto failures = failures_.find(record.node);
      failures != failures_.end() && !failures->second.here)
    failures_.erase(failures);
  failure_.clear();
  pause_s_ = try_at_ = 0;
}

void LaunchMachine::AwaitAgents(double now) {
  for (auto& [number, job] : jobs_) {
    const bool due =
        job.record.state == State::kSubmitted && job.record.started_at > 0 && !job.host.connected;
    if (!due || now - job.agent_due_from < limits_.agent_patience_s) continue;
    const std::string why = fmt::format(
        "its agent {} {:.0f} s", job.agent_came ? "has been away for" : "has not come within",
        limits_.agent_patience_s);
    // A node on which an agent has worked is no reason to wait with the next.
    if (!job.agent_came) NoteFailure(&job, NotCome(job, why), now);
    Stop(&job, why, now);
  }
}

// Nodes whose agents are there and can compute nothing. The failure counts against the node, so its
// name is waited for, if the launcher tells names.
void LaunchMachine::ReturnBroken(double now) {
  for (auto& [number, job] : jobs_) {
    if (job.record.state != State::kSubmitted || job.broken_since == 0) continue;
    if (job.record.node.empty() && now - job.broken_since < kNamedWithin * limits_.list_every_s)
      continue;
    NoteFailure(&job, job.host.broken, now, job.host.at_fault);
    Stop(&job, job.host.broken, now);
  }
}

void LaunchMachine::LogEnds(int64_t number, const std::string& last_lines) {
  const Job* job = Find(number);
  if (job == nullptr || last_lines.empty()) return;
  const std::string log = "; its log ends: " + last_lines;
  if (failure_.starts_with(Named(job->record))) failure_ += log;
  const auto excluded = excluded_.find(job->record.node);
  if (excluded != excluded_.end() && excluded->second.starts_with(Named(job->record)))
    excluded->second += log;
}

void LaunchMachine::StopAgain(double now) {
  for (auto& [number, job] : jobs_) {
    if (job.record.state != State::kStopping || job.submitting) continue;
    if (now - job.stop_asked_at < kStopAgain_s) continue;
    StopOnceMore(&job, now);
  }
}

void LaunchMachine::StopOnceMore(Job* job, double now) {
  job->stop_asked_at = now;
  job->stop_failure.clear();
  Push(Order::Kind::kStop, job->record);
}

// ---- how many there are to be

void LaunchMachine::ReturnIdle(double now) {
  for (auto& [number, job] : jobs_) {
    if (Count(false) <= limits_.nodes_min) return;
    if (!Lives(job) || job.idle_since == 0 || now - job.idle_since < limits_.idle_s) continue;
    Stop(&job, fmt::format("it had no work for {:.0f} s", now - job.idle_since), now);
  }
}

// Jobs that wait for a node that is no longer needed; the youngest first.
void LaunchMachine::ReturnSurplus(double now) {
  if (Count(false) <= target_) {
    surplus_since_ = 0;
    return;
  }
  if (surplus_since_ == 0) surplus_since_ = now;
  if (now - surplus_since_ < kSurplus_s) return;
  for (auto job = jobs_.rbegin(); job != jobs_.rend() && Count(false) > target_; ++job) {
    const bool waits = Lives(job->second) && job->second.record.started_at == 0 &&
                       !job->second.submitting && !job->second.record.job.empty();
    if (waits) Stop(&job->second, "it is not needed any more", now);
  }
}

void LaunchMachine::SubmitMissing(double now) {
  if (now < try_at_ || silent_since_ > 0) return;
  if (limits_.node_hours_per_day > 0 && NodeHours(now) >= limits_.node_hours_per_day) return;
  while (Count(false) < target_ && Count(true) < limits_.pending_max) Begin(now);
}

void LaunchMachine::ForgetOld(double now) {
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    const NodeJob& record = job->second.record;
    const bool counts = record.used_s + record.started_at > 0 && now - record.ended_at < kDay_s;
    const bool last = record.number == last_number_;  // no later job may be called so
    if (record.state != State::kOver || counts || last || job->second.host.connected) {
      ++job;
      continue;
    }
    Push(Order::Kind::kForget, record);
    job = jobs_.erase(job);
  }
}

void LaunchMachine::StopAll(double now) {
  stopped_ = true;
  for (auto& [number, job] : jobs_) Stop(&job, "the work is over", now);
}

void LaunchMachine::Tick(const NodeDemand& demand, double now) {
  AwaitAgents(now);
  ReturnBroken(now);
  StopAgain(now);
  if (!stopped_) ReturnIdle(now);
  target_ = std::clamp(Here() + NodesWanted(demand, costs_), limits_.nodes_min, limits_.nodes_max);
  if (!stopped_) {
    ReturnSurplus(now);
    SubmitMissing(now);
  }
  const bool open =
      silent_since_ > 0 || std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
        return job.second.record.state != State::kOver;
      });
  if (open && !listing_ && now >= list_at_) {
    listing_ = true;
    Push(Order::Kind::kList);
  }
  ForgetOld(now);
}

}  // namespace evald
