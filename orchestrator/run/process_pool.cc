#include "orchestrator/run/process_pool.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "evald/error.h"

namespace evald {
namespace {

constexpr std::chrono::milliseconds kFirstPause{200};

}  // namespace

ProcessPool::ProcessPool(Loop* loop, Agent* agent, std::vector<ProcessSpec> specs, int restarts_max)
    : loop_(loop), agent_(agent), restarts_max_(restarts_max) {
  for (ProcessSpec& spec : specs) members_[spec.id].spec = std::move(spec);
}

void ProcessPool::StartAll() {
  for (auto& [id, member] : members_) Start(&member);
}

void ProcessPool::Start(Member* member) {
  agent_->Start(member->spec);
  member->running = true;
}

bool ProcessPool::TakeWant(const std::string& id) {
  Member& member = members_.at(id);
  if (!member.ready || member.wants == 0) return false;
  --member.wants;
  return true;
}

void ProcessPool::Exited(const std::string& id, const std::string& how) {
  Member& member = members_.at(id);
  member.running = member.connected = member.ready = false;
  member.wants = 0;
  last_exit_ = member.cause.empty() ? id + ": " + how : id + ": " + member.cause;
  member.cause.clear();
  if (closing_ || member.restarts >= restarts_max_) return;
  member.restarting = true;
  const auto pause = kFirstPause * (1 << std::min(member.restarts, 6));
  ++member.restarts;
  spdlog::warn("{} ended ({}); starting it again in {} ms ({} of {} restarts)", id, how, pause.count(),
               member.restarts, restarts_max_);
  loop_->After(pause, [this, id] {
    Member& waiting = members_.at(id);
    waiting.restarting = false;
    if (closing_) return;
    try {
      Start(&waiting);
    } catch (const Error& e) {
      Exited(id, e.what());
    }
  });
}

bool ProcessPool::exhausted() const {
  return std::none_of(members_.begin(), members_.end(), [](const auto& entry) {
    return entry.second.running || entry.second.restarting;
  });
}

std::vector<std::string> ProcessPool::ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, member] : members_) ids.push_back(id);
  return ids;
}

size_t ProcessPool::running() const {
  return static_cast<size_t>(std::count_if(members_.begin(), members_.end(),
                                           [](const auto& entry) { return entry.second.running; }));
}

}  // namespace evald
