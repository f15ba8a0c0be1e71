#include "orchestrator/service/node_pool.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "orchestrator/fleet_machine/events.h"
#include "orchestrator/service/node_pool_view.h"
#include "protocol/agent_join.h"

namespace evald {
namespace {

using OrderKind = LaunchMachine::Order::Kind;

constexpr double kTellEnds_s = 5;
constexpr int64_t kLastAnswerMicros = 2'000'000;
constexpr useconds_t kLookMicros = 10'000;

// A name that may stand among the arguments of a launcher's programs.
bool IsNodeName(const std::string& node) {
  return !node.empty() && node.size() <= 255 && node[0] != '-' &&
         std::all_of(node.begin(), node.end(), [](unsigned char c) {
           return c < 128 && (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.');
         });
}

}  // namespace

NodePool::NodePool(NodePoolOptions options, Support support, Records records,
                   const Earlier& earlier)
    : options_(std::move(options)),
      support_(support),
      records_(std::move(records)),
      machine_(options_.limits),
      recorded_excluded_(earlier.excluded),
      thread_(std::make_unique<WorkThread>("launcher", support_.loop, WorkThread::AtEnd::kDrop)) {
  support_.tokens->Reserve(options_.name);
  std::vector<NodeJob> jobs;
  for (const Earlier::Job& one : earlier.jobs) {
    jobs.push_back(one.job);
    if (one.job.state != NodeJob::State::kOver)
      support_.tokens->Restore(HostOf(one.job), one.token_hash, options_.gpus_per_node);
  }
  machine_.Restored(jobs, earlier.excluded, Now());
}

// A call that is about to end may still have its answer.
NodePool::~NodePool() {
  *alive_ = false;
  for (int64_t until = MonotonicMicros() + kLastAnswerMicros;
       thread_ && calls_ > 0 && MonotonicMicros() < until;)
    ::usleep(kLookMicros);
  options_.launcher->GiveUp();
  thread_.reset();
}

void NodePool::Ask(std::function<void()> work, WorkThread::Done done) {
  if (!thread_) return;
  thread_->Post(
      [this, work = std::move(work)] {
        struct Counted {
          explicit Counted(std::atomic<int>* count) : count(count) { ++*count; }
          ~Counted() { --*count; }
          std::atomic<int>* count;
        } const counted(&calls_);
        work();
      },
      std::move(done));
}

std::string NodePool::HostOf(const NodeJob& job) const {
  return fmt::format("{}-{}", options_.name, job.number);
}

// The machine's time goes on evenly, however the wall clock is set meanwhile.
double NodePool::Now() {
  return now_ = begun_ + 1e-6 * static_cast<double>(MonotonicMicros() - begun_us_);
}

void NodePool::Tick(const NodeDemand& demand) {
  for (const auto& [number, job] : machine_.jobs()) {
    NodeHost host = support_.fleet->NodeHostOf(HostOf(job.record));
    host.refused = support_.hub->RefusalOf(HostOf(job.record));
    if (!(host == job.host)) machine_.HostIs(number, host, Now());
  }
  machine_.Tick(demand, Now());
  Carry();
  TellEnds();
  std::vector<std::string> problems = machine_.Problems(now_);
  for (const std::string& problem : problems) {
    if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end())
      log::Warn("launcher '{}': {}", options_.name, problem);
  }
  problems_ = std::move(problems);
  CheckStopped();
}

// An agent that comes anew may not know its end, so the fleet is told again and again.
void NodePool::TellEnds() {
  if (now_ - ends_told_at_ < kTellEnds_s) return;
  ends_told_at_ = now_;
  for (const auto& [number, job] : machine_.jobs()) {
    if (job.host.connected && job.listed.ends_at > 0)
      support_.fleet->HostEnds(HostOf(job.record), job.listed.ends_at - WallSeconds());
  }
}

void NodePool::StopAll(double patience_s, std::function<void()> done) {
  stopped_ = std::move(done);
  stop_until_ = Now() + std::min(patience_s, patience_most_s_);
  machine_.StopAll(now_);
  Carry();
  CheckStopped();
}

// A job whose submission is under way is told to end once the answer is there.
void NodePool::CheckStopped() {
  if (!stopped_) return;
  const auto& jobs = machine_.jobs();
  const bool open = std::any_of(jobs.begin(), jobs.end(), [](const auto& entry) {
    return entry.second.submitting || !entry.second.stop_failure.empty();
  });
  if (thread_ && (open || telling_ > 0)) {
    if (Now() < stop_until_) return;
    Abandon();
  }
  std::exchange(stopped_, nullptr)();
}

void NodePool::Hurry(double patience_s) {
  patience_most_s_ = patience_s;
  stop_until_ = std::min(stop_until_, Now() + patience_s);
}

void NodePool::Abandon() {
  if (!thread_) return;
  options_.launcher->GiveUp();
  thread_.reset();
  std::vector<std::string> names;
  for (const auto& [number, job] : machine_.jobs()) {
    if (job.record.state == NodeJob::State::kOver || told_.count(number) > 0) continue;
    options_.launcher->StopUnanswered(job.record);
    names.push_back(job.record.name);
  }
  if (names.empty()) return;
  log::Warn(
      "launcher '{}' has not answered: job{} '{}' may still wait or run; evald has asked for the "
      "end without waiting for the answer; {}; an agent that finds nobody ends after {:.0f} s",
      options_.name, names.size() == 1 ? "" : "s", Join(names, "', '"),
      options_.launcher->HowToStop(names), options_.linger_s);
}

bool NodePool::Release(const std::string& node) {
  if (machine_.excluded().count(node) == 0) return false;
  machine_.Release(node);
  Carry();
  return true;
}

// ---- orders

void NodePool::Carry() {
  for (const LaunchMachine::Order& order : machine_.TakeOrders()) Do(order);
  RecordExcluded();
}

void NodePool::RecordExcluded() {
  if (machine_.excluded() == recorded_excluded_) return;
  recorded_excluded_ = machine_.excluded();
  if (records_.exclude) records_.exclude(recorded_excluded_);
}

void NodePool::Do(const LaunchMachine::Order& order) {
  switch (order.kind) {
    case OrderKind::kSubmit:
      return Submit(order.job);
    case OrderKind::kStop:
      Save(order.job, nullptr);
      SendAway(HostOf(order.job));
      return Stop(order.job);
    case OrderKind::kStopJob:
      log::Warn("launcher '{}': job {} is nobody's and ends", options_.name, order.job.job);
      return Stop(order.job);
    case OrderKind::kList:
      return List();
    case OrderKind::kSave:
      if (order.job.state == NodeJob::State::kOver) {
        log::Info("launcher '{}': job {} is over: {}", options_.name, order.job.name,
                  order.job.why);
        support_.tokens->End(HostOf(order.job));
        support_.hub->Expel(HostOf(order.job), order.job.why);
      }
      return Save(order.job, nullptr);
    case OrderKind::kForget:
      if (records_.forget) records_.forget(order.job.number);
      return;
    case OrderKind::kReadLog:
      return ReadLog(order.job);
    case OrderKind::kExclude:
      return Exclude(order.job);
  }
}

// A host without work ends by itself, and its job with it, even while the launcher does not answer.
void NodePool::SendAway(const std::string& host) {
  const NodeHost now = support_.fleet->NodeHostOf(host);
  if (!now.connected) return;
  support_.fleet->HostIs(host, HostNews::kLeaving);
  if (!now.busy) support_.hub->StopHost(host);
}

void NodePool::Save(const NodeJob& job, std::function<void()> done) {
  if (records_.save) return records_.save(job, support_.tokens->HashOf(HostOf(job)), done);
  if (done) support_.loop->Post(std::move(done));
}

// The job is on record before the launcher hears of it.
void NodePool::Submit(const NodeJob& job) {
  const std::string host = HostOf(job);
  const std::string join =
      protocol::EncodeJoin({options_.server, support_.tokens->Make(host, options_.gpus_per_node),
                            options_.authority, host, options_.linger_s});
  Save(job, [this, alive = alive_, job, join] {
    if (!*alive) return;
    const std::vector<std::string> excluded = Excluded();
    FailPoint("launch.recorded");
    log::Info("launcher '{}': submitting {}", options_.name, job.name);
    auto answer = std::make_shared<SubmitAnswer>();
    Ask(
        [this, answer, job, join, excluded] {
          *answer = options_.launcher->Submit(job, join, excluded);
          FailPoint("launch.submitted");
        },
        [this, alive, answer, number = job.number](const std::optional<Error>& error) {
          if (!*alive) return;
          if (error) *answer = {SubmitAnswer::Outcome::kUnknown, "", error->what()};
          machine_.Submitted(number, *answer, Now());
          Carry();
        });
  });
}

void NodePool::Stop(const NodeJob& job) {
  told_.erase(job.number);
  ++telling_;
  Ask(
      [this, job] {
        options_.launcher->Stop(job);
        FailPoint("launch.stopped");
      },
      [this, alive = alive_, job](const std::optional<Error>& error) {
        if (!*alive) return;
        --telling_;
        if (!error) told_.insert(job.number);
        if (error) {
          machine_.StopFailed(job.number, error->what(), Now());
        } else {
          log::Info("launcher '{}': {} was told to end{}{}", options_.name,
                    job.name.empty() ? "job " + job.job : job.name, job.why.empty() ? "" : ": ",
                    job.why);
        }
        Carry();
      });
}

void NodePool::List() {
  auto jobs = std::make_shared<std::vector<ListedJob>>();
  Ask([this, jobs] { *jobs = options_.launcher->List(); },
      [this, alive = alive_, jobs, asked = Now()](const std::optional<Error>& error) {
        if (!*alive) return;
        if (error) {
          machine_.ListFailed(error->what(), Now());
        } else {
          machine_.Listed(*jobs, asked, Now());
        }
        Carry();
      });
}

void NodePool::ReadLog(const NodeJob& job) {
  auto end = std::make_shared<std::string>();
  Ask([this, end, job] { *end = options_.launcher->LogEnd(job); },
      [this, alive = alive_, end, number = job.number](const std::optional<Error>&) {
        if (*alive) machine_.LogEnds(number, *end);
      });
}

std::vector<std::string> NodePool::Excluded() const {
  std::vector<std::string> nodes;
  for (const auto& [node, why] : machine_.excluded()) {
    if (IsNodeName(node)) nodes.push_back(node);
  }
  return nodes;
}

void NodePool::Exclude(const NodeJob& job) {
  Ask([this, job, excluded = Excluded()] { options_.launcher->Exclude(job, excluded); },
      [name = options_.name, job](const std::optional<Error>& error) {
        if (!error) return;
        log::Warn(
            "launcher '{}': {} keeps the nodes that it was not to use when it was "
            "submitted: {}",
            name, job.name, error->what());
      });
}

// ---- looking

int NodePool::DevicesToCome() const {
  const auto& jobs = machine_.jobs();
  const auto waiting = std::count_if(jobs.begin(), jobs.end(), [](const auto& entry) {
    const LaunchMachine::Job& job = entry.second;
    return (job.record.state == NodeJob::State::kIntended ||
            job.record.state == NodeJob::State::kSubmitted) &&
           !job.host.connected;
  });
  return static_cast<int>(waiting) * machine_.costs().devices;
}

Json NodePool::View() const { return ShowNodes(options_, machine_, now_); }

std::vector<std::string> NodePool::Awaited() const {
  std::vector<std::string> awaited = problems_;
  const std::string waits = ShowWaiting(options_, machine_);
  if (!waits.empty()) awaited.insert(awaited.begin(), waits);
  return awaited;
}

std::string NodePool::Hopeless() const { return machine_.Hopeless(); }

// ---- records

namespace {

constexpr std::pair<NodeJob::State, const char*> kJobStates[] = {
    {NodeJob::State::kIntended, "intended"},
    {NodeJob::State::kSubmitted, "submitted"},
    {NodeJob::State::kStopping, "stopping"},
    {NodeJob::State::kOver, "over"}};

}  // namespace

const char* NameOf(NodeJob::State state) {
  for (const auto& [known, name] : kJobStates) {
    if (known == state) return name;
  }
  return "unknown";
}

std::string EncodeNodeJob(const NodeJob& job) {
  return ToLine({{"number", job.number},
                 {"name", job.name},
                 {"state", NameOf(job.state)},
                 {"job", job.job},
                 {"node", job.node},
                 {"intended_at", job.intended_at},
                 {"started_at", job.started_at},
                 {"ended_at", job.ended_at},
                 {"used_s", job.used_s},
                 {"why", job.why}});
}

NodeJob DecodeNodeJob(const std::string& text) {
  const std::string where = "the record of a job";
  const Json json = ParseJson(text, where);
  NodeJob job;
  job.number = Field<int64_t>(json, "number", where);
  job.name = Field<std::string>(json, "name", where);
  const std::string state = Field<std::string>(json, "state", where);
  const auto* known = std::find_if(std::begin(kJobStates), std::end(kJobStates),
                                   [&](const auto& one) { return one.second == state; });
  if (known == std::end(kJobStates))
    throw Error(ErrorKind::kInput, fmt::format("{}: state '{}' is unknown", where, state));
  job.state = known->first;
  job.job = Field<std::string>(json, "job", where);
  job.node = Field<std::string>(json, "node", where);
  job.intended_at = Field<double>(json, "intended_at", where);
  job.started_at = Field<double>(json, "started_at", where);
  job.ended_at = Field<double>(json, "ended_at", where);
  job.used_s = Field<double>(json, "used_s", where);
  job.why = Field<std::string>(json, "why", where);
  return job;
}

}  // namespace evald
