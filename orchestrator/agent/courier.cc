#include "orchestrator/agent/courier.h"

#include <fmt/format.h>

#include <random>

#include "base/log.h"
#include "evald/error.h"
#include "http_client/client.h"
#include "orchestrator/staging/fingerprint.h"
#include "orchestrator/staging/free_space.h"

namespace evald {
namespace {

constexpr int kThreads = 4;
constexpr int kKeepDays = 7;
constexpr std::chrono::milliseconds kLongestPause{5000};
constexpr int kTriesMax = 6;      // counted while the orchestrator is there
constexpr int kRoomTriesMax = 3;  // the same if only room is missing, and nothing gives it up

// Whether the message needs files to move.
bool NamesFiles(const protocol::Message& message) {
  if (const auto* load = std::get_if<protocol::Load>(&message))
    return IsFingerprint(load->fingerprint);
  return std::holds_alternative<protocol::Lease>(message) ||
         std::holds_alternative<protocol::Job>(message) ||
         std::holds_alternative<protocol::SliceDone>(message) ||
         std::holds_alternative<protocol::JobDone>(message);
}

// The message to the orchestrator if the files of a message cannot be fetched or given. `no_room`:
// this host has no room for them, nor would it have more later.
std::optional<protocol::Message> Failure(const protocol::Message& message, const std::string& why,
                                         bool no_room) {
  if (const auto* lease = std::get_if<protocol::Lease>(&message)) {
    return protocol::TrialFailed{lease->trial, lease->attempt, true, why};
  }
  if (std::holds_alternative<protocol::Load>(message))
    return protocol::TrialFailed{-1, 0, !no_room, why, false, "", no_room};
  if (const auto* job = std::get_if<protocol::Job>(&message)) {
    return protocol::JobFailed{job->job, true, why, job->attempt};
  }
  if (const auto* slice = std::get_if<protocol::SliceDone>(&message)) {
    return protocol::TrialFailed{slice->trial, slice->attempt, true, why};
  }
  if (const auto* done = std::get_if<protocol::JobDone>(&message)) {
    return protocol::JobFailed{done->job, true, why, done->attempt};
  }
  return std::nullopt;
}

}  // namespace

Courier::Courier(Loop* loop, OrchestratorAddress address, std::filesystem::path folder,
                 const std::string& instance, StagerOptions staging, Hooks hooks,
                 std::chrono::milliseconds first_pause, std::shared_ptr<ChunkShelf> shelf)
    : loop_(loop),
      address_(std::move(address)),
      spool_(std::move(folder), instance),
      checkpoints_(address_, instance, std::move(staging), std::move(shelf)),
      hooks_(std::move(hooks)),
      first_pause_(first_pause),
      over_(std::make_shared<std::atomic<bool>>(false)) {
  work_.push_back([this] { spool_.Tidy(kKeepDays); });
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Work(); });
}

Courier::~Courier() {
  *alive_ = false;
  *over_ = true;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    work_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Courier::Work() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !work_.empty(); });
      if (closing_) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

// ---- lanes

void Courier::ToProcess(const std::string& id, const protocol::Message& message) {
  lanes_[{id, true}].waiting.push_back({message, {}, ++serials_});
  Advance({id, true});
}

void Courier::FromProcess(const std::string& id, const protocol::Message& message) {
  if (std::holds_alternative<protocol::Progress>(message))
    return hooks_.to_orchestrator(id, message);
  if (std::holds_alternative<protocol::Loaded>(message)) {
    const std::lock_guard lock(staged_mutex_);
    auto& staged = staged_[id];
    if (staged.size() > 1) staged.erase(staged.begin(), staged.end() - 1);
  }
  lanes_[{id, false}].waiting.push_back({message, {}, ++serials_});
  Advance({id, false});
}

void Courier::Ended(const std::string& id, std::function<void()> told) {
  DropLane({id, true});
  {
    const std::lock_guard lock(staged_mutex_);
    staged_.erase(id);
  }
  lanes_[{id, false}].waiting.push_back({protocol::Stop{}, std::move(told), ++serials_});
  Advance({id, false});
}

void Courier::DropLane(const LaneKey& key) {
  const auto lane = lanes_.find(key);
  if (lane == lanes_.end()) return;
  for (const Errand& errand : lane->second.waiting) {
    if (!errand.told) hooks_.undelivered(key.first, errand.message);
  }
  lane->second.waiting.clear();
}

void Courier::BeginAnew() {
  *over_ = true;
  over_ = std::make_shared<std::atomic<bool>>(false);
  for (auto& [key, lane] : lanes_) {
    if (key.second) DropLane(key);
    std::erase_if(lane.waiting, [](const Errand& errand) { return !errand.told; });
    lane.busy = false;
  }
  const auto lanes = lanes_;
  for (const auto& [key, lane] : lanes) Advance(key);
}

// Passes messages on until one needs files, and begins to move those. The message that needs them
// stays in the lane until they are there.
void Courier::Advance(const LaneKey& key) {
  Lane& lane = lanes_[key];
  while (!lane.busy && !lane.waiting.empty()) {
    if (!lane.waiting.front().told && NamesFiles(lane.waiting.front().message)) {
      lane.busy = true;
      const std::lock_guard lock(mutex_);
      work_.push_back([this, key, message = lane.waiting.front().message,
                       serial = lane.waiting.front().serial, over = over_, alive = alive_] {
        const Outcome outcome = Carry(key, message, over.get());
        loop_->Post([this, key, over, serial, alive, outcome] {
          if (*alive) Finish(key, over, serial, outcome);
        });
      });
      changed_.notify_one();
      return;
    }
    const Errand errand = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    if (errand.told) {
      errand.told();
    } else {
      (key.second ? hooks_.to_process : hooks_.to_orchestrator)(key.first, errand.message);
    }
  }
}

void Courier::Finish(const LaneKey& key, const std::shared_ptr<std::atomic<bool>>& conversation,
                     uint64_t serial, const Outcome& outcome) {
  Lane& lane = lanes_[key];
  if (conversation != over_) return;  // of an earlier conversation
  lane.busy = false;
  // Otherwise it was dropped with its process
  if (!lane.waiting.empty() && lane.waiting.front().serial == serial) {
    const Errand errand = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    if (key.second && !outcome.onward) hooks_.undelivered(key.first, errand.message);
    if (outcome.onward)
      (key.second ? hooks_.to_process : hooks_.to_orchestrator)(key.first, *outcome.onward);
    if (outcome.back) hooks_.to_orchestrator(key.first, *outcome.back);
    // The process asked for work and got none, so it asks again.
    const bool asked = std::holds_alternative<protocol::Lease>(errand.message) ||
                       std::holds_alternative<protocol::Job>(errand.message);
    if (key.second && asked && !outcome.onward)
      hooks_.to_orchestrator(key.first, protocol::Want{1});
  }
  Advance(key);
}

// ---- files; on a thread

// Tries until the move succeeds, is refused, has failed too often while the orchestrator was there,
// or is no longer wanted.
Courier::Outcome Courier::Carry(const LaneKey& key, const protocol::Message& message,
                                const std::atomic<bool>* over) {
  const http_client::RetryPolicy pauses{.first_pause = first_pause_,
                                        .longest_pause = kLongestPause};
  std::mt19937 random{std::random_device{}()};
  int failed = 0, without_room = 0;
  for (int tries = 1;; ++tries) {
    if (*over) return {};
    try {
      return {key.second ? Localize(key.first, message, over) : Give(message, over), {}};
    } catch (const Error& e) {
      if (*over) return {};
      if (connected_) ++failed;
      const bool no_room =
          dynamic_cast<const NoSpace*>(&e) != nullptr && checkpoints_.NothingStaged();
      if (no_room) ++without_room;
      const bool over_tried = failed >= kTriesMax || without_room >= kRoomTriesMax;
      if (e.kind() != ErrorKind::kInfrastructure || over_tried) {
        log::Error("{}: {}", key.first, e.what());
        return {{}, Failure(message, e.what(), no_room)};
      }
      log::Warn("{}: {}; trying again", key.first, e.what());
    } catch (const std::exception& e) {
      return {{}, Failure(message, e.what(), false)};
    }
    const double draw = std::uniform_real_distribution<double>(0, 1)(random);
    http_client::Pause(http_client::RetryPause(pauses, tries, 0, draw), over);
  }
}

protocol::Message Courier::Localize(const std::string& id, const protocol::Message& message,
                                    const std::atomic<bool>* over) {
  FileClient client(address_, over);
  if (const auto* lease = std::get_if<protocol::Lease>(&message))
    return spool_.Localize(*lease, &client);
  if (const auto* job = std::get_if<protocol::Job>(&message)) return spool_.Localize(*job, &client);
  protocol::Load load = std::get<protocol::Load>(message);
  auto staged = std::make_shared<StagedCheckpoint>(checkpoints_.Obtain(load.fingerprint, over));
  load.directory = staged->directory().string();
  const std::lock_guard lock(staged_mutex_);
  staged_[id].push_back(std::move(staged));
  return load;
}

protocol::Message Courier::Give(const protocol::Message& message, const std::atomic<bool>* over) {
  FileClient client(address_, over);
  if (const auto* done = std::get_if<protocol::JobDone>(&message)) {
    protocol::JobDone given = *done;
    given.file = spool_.Give(done->file, done->hash, &client);
    return given;
  }
  protocol::SliceDone given = std::get<protocol::SliceDone>(message);
  given.file = spool_.Give(given.file, given.hash, &client);
  return given;
}

}  // namespace evald
