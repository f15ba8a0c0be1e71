#include "worker/trial_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr std::chrono::milliseconds kStepBudget{50};
constexpr std::chrono::milliseconds kWait{500};
constexpr size_t kOpenTrialsMax = 16;
constexpr int64_t kNoteMicros = 500'000;  // between two heartbeats
// The requests that the worker holds ready for the engine, in seconds of the engine's work. They
// hide the wait for the agent's answer to Want and for the opening of the next trial's files. The
// limit is a time, not a number: as many long requests as the engine has places for would wait for
// minutes, and urgent ones behind them.
constexpr double kLookaheadSeconds = 0.5;

Error AsError(const std::exception& e) {
  const auto* error = dynamic_cast<const Error*>(&e);
  return error != nullptr ? *error : Error(ErrorKind::kInternal, e.what());
}

}  // namespace

TrialLoop::TrialLoop(Engine* engine, Sender send)
    : engine_(engine),
      send_(send),
      info_(engine->Info()),
      timeline_(send, MonotonicMicros()),
      committer_(std::in_place, send),
      snapshot_{protocol::Progress{}},
      round_us_(MonotonicMicros()) {}

TrialLoop::~TrialLoop() = default;

void TrialLoop::Post(protocol::Message message) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(message));
  }
  posted_.notify_all();
}

std::vector<protocol::Progress> TrialLoop::Snapshot() const {
  const int64_t silent_ms = (MonotonicMicros() - round_us_) / 1000;
  const LoadProgress loading = engine_->Loading();
  const std::lock_guard lock(mutex_);
  std::vector<protocol::Progress> snapshot = snapshot_;
  for (protocol::Progress& progress : snapshot) {
    progress.engine_silent_ms = silent_ms;
    progress.pulled = loading.done;
    progress.to_pull = loading.total;
    if (!progress.oldest_task.empty())
      progress.oldest_seconds += static_cast<double>(silent_ms) / 1e3;
  }
  return snapshot;
}

void TrialLoop::Run() {
  while (true) {
    round_us_ = MonotonicMicros();
    TakeMessages(in_flight_.empty() && open_.empty() && waiting_.empty() && !draining_);
    if (stopping_) break;
    std::erase_if(open_, [](const auto& trial) { return trial->state()->over.load(); });
    if (draining_ && open_.empty() && !LeasesWait()) break;
    TakeUpWaiting();
    if (broken_) break;
    FeedEngine();
    FlushAndCommit();
    AskForMore();
    if (!in_flight_.empty()) Compute();
    if (broken_) break;
    UpdateSnapshot();
  }
  command_.reset();
  engine_->CancelAll();
  timeline_.Close(MonotonicMicros());
  committer_.reset();  // waits for what is queued
  if (broken_) send_(protocol::TrialFailed{-1, 0, true, *broken_, true});
}

// Whether the engine is broken. If so, finished answers are sent now, before the last message.
bool TrialLoop::Broke() {
  broken_ = engine_->Broken();
  if (broken_) FlushAndCommit();
  return broken_.has_value();
}

void TrialLoop::TakeMessages(bool wait) {
  std::deque<protocol::Message> taken;
  if (wait && !followed_us_) timeline_.Idle(MonotonicMicros());
  {
    std::unique_lock lock(mutex_);
    if (wait && inbox_.empty()) {
      posted_.wait_for(lock, kWait, [this] { return !inbox_.empty(); });
    }
    taken.swap(inbox_);
  }
  for (protocol::Message& message : taken) {
    std::visit([this](auto&& what) { Handle(std::move(what)); }, std::move(message));
  }
}

template <typename T>
void TrialLoop::Handle(T&&) {
  log::Warn("a message that is not for a worker was passed over");
}

void TrialLoop::Handle(protocol::Load&& load) {
  waiting_.emplace_back(std::move(load));
  wanted_ = 0;  // a Load cancels earlier Wants
}

void TrialLoop::Handle(protocol::Follow&& follow) {
  waiting_.emplace_back(std::move(follow));
  wanted_ = 0;  // as a Load
}

void TrialLoop::Handle(protocol::Lease&& lease) {
  if (!leased_.Add(lease.trial, lease.attempt)) {
    return log::Warn("trial {}, attempt {} was leased to this worker twice", lease.trial,
                     lease.attempt);
  }
  wanted_ = std::max(wanted_ - 1, 0);
  waiting_.emplace_back(std::move(lease));
}

void TrialLoop::Handle(protocol::Revoke&& revoke) {
  const auto matches = [&](int64_t trial, int attempt) {
    return trial == revoke.trial && attempt == revoke.attempt;
  };
  std::erase_if(waiting_, [&](const auto& entry) {
    const auto* lease = std::get_if<protocol::Lease>(&entry);
    return lease != nullptr && matches(lease->trial, lease->attempt);
  });
  leased_.Remove(revoke.trial, revoke.attempt);
  const Trials held = open_;
  for (const auto& trial : held) {
    if (!matches(trial->state()->trial, trial->state()->attempt)) continue;
    try {
      trial->Flush();  // keeps what the last step finished
    } catch (const std::exception& e) {
      log::Warn("trial {}: {}", revoke.trial, e.what());
    }
    Drop(trial);
  }
  committer_->AnswerRevoke(revoke);
}

void TrialLoop::Handle(protocol::Shorten&& shorten) {
  std::optional<int64_t> end;
  for (const auto& trial : open_) {
    if (trial->state()->trial != shorten.trial || trial->state()->attempt != shorten.attempt)
      continue;
    end = trial->Shorten(shorten.task, shorten.first, shorten.end);
  }
  for (auto& entry : waiting_) {
    auto* lease = std::get_if<protocol::Lease>(&entry);
    if (lease == nullptr || lease->trial != shorten.trial || lease->attempt != shorten.attempt)
      continue;
    for (protocol::Slice& slice : lease->slices) {
      if (slice.task != shorten.task || slice.first != shorten.first) continue;
      end = slice.end = std::clamp(shorten.end, std::min(slice.first + 1, slice.end), slice.end);
    }
  }
  if (end)
    send_(protocol::Shortened{shorten.trial, shorten.attempt, shorten.task, shorten.first, *end});
}

bool TrialLoop::LeasesWait() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const auto& entry) {
    return std::holds_alternative<protocol::Lease>(entry);
  });
}

void TrialLoop::TakeUpWaiting() {
  while (!waiting_.empty()) {
    const auto* lease = std::get_if<protocol::Lease>(&waiting_.front());
    if (lease == nullptr && !open_.empty()) return;
    if (lease != nullptr) {
      Open(*lease);
    } else if (const auto* load = std::get_if<protocol::Load>(&waiting_.front())) {
      LoadCheckpoint(*load);
      if (broken_) return;
    } else {
      FollowStaging(std::get<protocol::Follow>(waiting_.front()));
    }
    waiting_.pop_front();
  }
}

// The loaded checkpoint answers no more requests: the followed one takes its memory.
void TrialLoop::FollowStaging(const protocol::Follow& follow) {
  TakeBackAll();
  loaded_.reset();
  followed_us_ = MonotonicMicros();
  engine_->Follow(follow.directory);
  staged_ = StagedLease();
}

void TrialLoop::LoadCheckpoint(const protocol::Load& load) {
  TakeBackAll();  // drops requests that revoked trials left in the engine
  int64_t begin = MonotonicMicros();
  const std::optional<int64_t> followed_us = std::exchange(followed_us_, std::nullopt);
  loaded_.reset();
  try {
    // An engine that needs no weights is given no folder.
    StagedLease staged = load.directory.empty() ? StagedLease() : StagedLease(load.directory);
    engine_->Load(load.directory);
    staged_ = std::move(staged);
    info_ = engine_->Info();
    loaded_ = load.fingerprint;
    directory_ = load.directory;
    FailPoint("worker.loaded");
  } catch (const std::exception& e) {
    const Error error = AsError(e);
    timeline_.Skip(begin, MonotonicMicros());
    if (Broke()) return;
    const bool lasting = dynamic_cast<const LastingError*>(&e) != nullptr;
    const bool anywhere = ExitStatusFor(error.kind()) == ExitStatus::kUsage || lasting;
    send_(protocol::TrialFailed{-1, 0, !anywhere, error.what(), false, "", lasting});
    return;
  }
  const int64_t end = MonotonicMicros();
  const Json report = engine_->LoadReport();
  const bool followed = report.is_object() && report.value("followed", uint64_t{0}) > 0;
  if (followed_us && followed) begin = *followed_us;
  timeline_.Skip(begin, end);  // before Loaded: earlier spans belong to the run before
  send_(protocol::Loaded{load.fingerprint, ToJson(info_), report});
  send_(protocol::Span{"pull", begin, end, report});
}

void TrialLoop::Open(const protocol::Lease& lease) {
  try {
    if (!loaded_) throw Error(ErrorKind::kInfrastructure, "this worker has no checkpoint loaded");
    if (lease.fingerprint != *loaded_) {
      // This model's answers would be taken for another's. Nothing that this worker was told can be
      // trusted any more, so its agent starts another worker.
      const std::string why =
          fmt::format("leased for checkpoint '{}', which is not what is loaded: '{}'",
                      lease.fingerprint, *loaded_);
      return send_(protocol::TrialFailed{-1, 0, true, why});
    }
    open_.push_back(std::make_shared<OpenTrial>(lease, info_, &prepared_));
    FailPoint("worker.lease_taken");
  } catch (const std::exception& e) {
    const Error error = AsError(e);
    send_(protocol::TrialFailed{lease.trial, lease.attempt, error.kind() != ErrorKind::kInput,
                                error.what()});
  }
}

void TrialLoop::FeedEngine() {
  const auto room = [this] { return in_flight_.size() < static_cast<size_t>(info_.concurrency); };
  // A command has the worker to itself: it begins once everything before is answered, and nothing
  // behind it begins before its end.
  const auto waits = [this](const auto& trial) {
    return command_ || (trial->next_command() != nullptr && !in_flight_.empty());
  };
  const Trials held = open_;
  for (const auto& trial : held) {
    while (room() && !waits(trial) && FeedFrom(trial)) {
    }
    if (!room() || waits(trial)) return;
    // After a failed Step the trials go through the engine one at a time, until it is known whose
    // request is at fault.
    if (!suspects_.empty() && trial->in_flight() > 0) return;
  }
}

bool TrialLoop::FeedFrom(const std::shared_ptr<OpenTrial>& trial) {
  try {
    InFlight entry{trial, {}};
    if (trial->state()->over || !trial->Next(&entry.feed, suspects_.count(trial) > 0)) return false;
    Request request = std::exchange(entry.feed.request, Request{});
    entry.feed.request.doc_id = request.doc_id;
    entry.feed.request.idx = request.idx;
    entry.feed.request.repeat = request.repeat;
    entry.feed.request.kind = request.kind;
    const uint64_t tag = next_tag_++;
    if (trial->command_of(entry.feed.slice) != nullptr) {
      StartCommand(tag, entry);
    } else {
      engine_->Submit(tag, std::move(request));
    }
    entry.begin_us = MonotonicMicros();
    in_flight_.emplace(tag, std::move(entry));
    return true;
  } catch (const std::exception& e) {
    Fail(trial, AsError(e), trial->feeding_task());
    return false;
  }
}

// The program's folder and log lie in the run's folder, beside the generations:
// generations/<task>/<file>.jsonl, commands/<task>/<file>/, logs/command-<task>.log.
void TrialLoop::StartCommand(uint64_t tag, const InFlight& entry) {
  const size_t slice = entry.feed.slice;
  const std::filesystem::path file = entry.trial->file_of(slice);
  const std::filesystem::path task = file.parent_path().filename();
  const std::filesystem::path run = file.parent_path().parent_path().parent_path();
  command::CommandOrder order;
  order.task = entry.trial->task_of(slice);
  order.spec = *entry.trial->command_of(slice);
  order.checkpoint = directory_;
  order.folder = run / "commands" / task / file.stem();
  order.log = run / "logs" / ("command-" + task.string() + ".log");
  command_ = Command{tag, std::make_unique<command::CommandRun>(engine_, std::move(order))};
}

// One turn of waiting for the program. Its failure is that of its task; a model that no longer
// answers is the worker's.
void TrialLoop::AwaitCommand() {
  const int64_t begin = MonotonicMicros();
  timeline_.Busy(begin);
  Finished finished{command_->tag, {}, std::nullopt};
  std::optional<Error> failed;
  try {
    std::optional<Generation> answer = command_->run->Wait(kStepBudget);
    Charge(std::max<int64_t>(MonotonicMicros() - begin, 1));
    if (!answer) return;
    finished.generation = std::move(*answer);
  } catch (const std::exception& e) {
    failed = AsError(e);
  }
  command_.reset();
  if (!failed) return Keep(std::move(finished));
  if (failed->kind() != ErrorKind::kInput) return StepFailed(*failed);
  finished.refused = std::move(failed);
  Keep(std::move(finished));
}

void TrialLoop::AskForMore() {
  if (command_) return;
  if (!loaded_ || draining_ || !waiting_.empty() || wanted_ > 0 || !suspects_.empty() ||
      open_.size() >= kOpenTrialsMax) {
    return;
  }
  int64_t remaining = 0;
  for (const auto& trial : open_) remaining += trial->Remaining();
  if (static_cast<double>(remaining) >= std::max(1.0, kLookaheadSeconds * requests_per_second_))
    return;
  wanted_ = 1;
  send_(protocol::Want{1});
}

void TrialLoop::Compute() {
  if (command_) return AwaitCommand();
  const int64_t begin = MonotonicMicros();
  timeline_.Busy(begin);
  std::vector<Finished> finished;
  try {
    finished = engine_->Step(kStepBudget);
  } catch (const std::exception& e) {
    StepFailed(AsError(e));
    return;
  }
  const int64_t micros = std::max<int64_t>(MonotonicMicros() - begin, 1);
  Charge(micros);
  const double rate = static_cast<double>(finished.size()) * 1e6 / static_cast<double>(micros);
  const double weight = std::min(1.0, static_cast<double>(micros) / 1e6);
  requests_per_second_ += weight * (rate - requests_per_second_);
  for (Finished& one : finished) Keep(std::move(one));
}

void TrialLoop::Charge(int64_t micros) {
  timeline_.Computed(micros);
  for (const auto& trial : open_) {
    trial->Charge(static_cast<double>(micros) / 1e6, static_cast<int64_t>(in_flight_.size()));
  }
}

void TrialLoop::Keep(Finished&& finished) {
  const auto found = in_flight_.find(finished.tag);
  if (found == in_flight_.end()) return;
  const InFlight entry = std::move(found->second);
  in_flight_.erase(found);
  if (entry.trial->state()->over) return;
  const Request& request = entry.feed.request;
  const std::string task = entry.trial->task_of(entry.feed.slice);
  if (finished.refused) return Fail(entry.trial, *finished.refused, task);
  finished.generation.doc_id = request.doc_id;
  finished.generation.idx = request.idx;
  finished.generation.repeat = request.repeat;
  finished.generation.kind = request.kind;
  try {
    const double seconds = static_cast<double>(MonotonicMicros() - entry.begin_us) / 1e6;
    entry.trial->Finish(entry.feed.slice, std::move(finished.generation), seconds);
  } catch (const std::exception& e) {
    Fail(entry.trial, AsError(e), task);
  }
}

void TrialLoop::FlushAndCommit() {
  const Trials held = open_;
  for (const auto& trial : held) {
    if (trial->state()->over) continue;
    try {
      trial->Flush();
    } catch (const std::exception& e) {
      Fail(trial, AsError(e));
      continue;
    }
    while (auto slice = trial->TakeComplete())
      committer_->Commit(trial->state(), std::move(*slice));
    if (!trial->complete()) continue;
    committer_->FinishTrial(trial->state(), trial->device_seconds());
    timeline_.TrialFinished(trial->state()->trial, MonotonicMicros());
    std::erase(open_, trial);
    suspects_.erase(trial);
  }
}

void TrialLoop::StepFailed(const Error& error) {
  std::vector<std::shared_ptr<OpenTrial>> affected;
  for (const auto& trial : open_) {
    if (trial->in_flight() > 0) affected.push_back(trial);
  }
  std::vector<size_t> slices;  // of the first trial: those that have requests in the engine
  if (!affected.empty()) slices = affected.front()->slices_in_flight();
  TakeBackAll();
  if (Broke()) return;
  if (error.kind() == ErrorKind::kInput && (affected.size() > 1 || slices.size() > 1)) {
    suspects_.insert(affected.begin(), affected.end());
    return;
  }
  const std::string task = slices.size() == 1 ? affected.front()->task_of(slices[0]) : "";
  for (const auto& trial : affected) Fail(trial, error, task);
}

// If a request can never be answered, its task is at fault: `task` names it.
void TrialLoop::Fail(const std::shared_ptr<OpenTrial>& trial, const Error& error,
                     const std::string& task) {
  const bool retry = error.kind() != ErrorKind::kInput;
  send_(protocol::TrialFailed{trial->state()->trial, trial->state()->attempt, retry, error.what(),
                              false, retry ? "" : task});
  Drop(trial);
}

void TrialLoop::Drop(const std::shared_ptr<OpenTrial>& trial) {
  trial->state()->over = true;
  std::erase(open_, trial);
  suspects_.erase(trial);
  // The engine cannot drop single requests. If it has requests of other trials too, those of this
  // trial end unread.
  const bool others = std::any_of(in_flight_.begin(), in_flight_.end(), [](const auto& entry) {
    return !entry.second.trial->state()->over;
  });
  if (!others) TakeBackAll();
}

void TrialLoop::TakeBackAll() {
  command_.reset();  // gives the engine back
  engine_->CancelAll();
  in_flight_.clear();
  for (const auto& trial : open_) {
    if (trial->in_flight() > 0) trial->Rewind();
  }
}

// Finds, for each trial, the request that has been in the engine for longest. All requests are
// looked at, so this is done once per heartbeat, not after every step. A request that ends in
// between is no longer reported.
void TrialLoop::NoteOldest(int64_t now) {
  if (!oldest_.empty() && now - oldest_noted_us_ < kNoteMicros) return;
  oldest_noted_us_ = now;
  oldest_.clear();
  for (const auto& [tag, entry] : in_flight_) {
    const TrialState& trial = *entry.trial->state();
    Oldest& oldest = oldest_[{trial.trial, trial.attempt}];
    if (oldest.tag != 0 && oldest.begin_us <= entry.begin_us) continue;
    oldest = {tag, entry.begin_us, entry.trial->task_of(entry.feed.slice)};
  }
}

void TrialLoop::UpdateSnapshot() {
  const int64_t now = MonotonicMicros();
  NoteOldest(now);
  std::vector<protocol::Progress> progress;
  for (const auto& trial : open_) {
    progress.push_back(trial->progress());
    const auto oldest = oldest_.find({trial->state()->trial, trial->state()->attempt});
    if (oldest == oldest_.end() || in_flight_.count(oldest->second.tag) == 0) continue;
    progress.back().oldest_task = oldest->second.task;
    progress.back().oldest_seconds = static_cast<double>(now - oldest->second.begin_us) / 1e6;
  }
  if (progress.empty()) progress.push_back(protocol::Progress{});
  const std::lock_guard lock(mutex_);
  snapshot_ = std::move(progress);
}

}  // namespace evald
