#include "orchestrator/fleet/process_pool.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kStopGrace{5000};

}  // namespace

ProcessPool::ProcessPool(Loop* loop, Host* host, int restarts_max)
    : loop_(loop), host_(host), restarts_max_(restarts_max) {}

void ProcessPool::AddSlot(const std::string& id) {
  if (members_.count(id) > 0) return;
  ids_.push_back(id);
  members_[id];
}

void ProcessPool::Adopt(ProcessSpec spec, bool connected) {
  Member& member = members_.at(spec.id);
  member.tag = spec.tag;
  member.spec = std::move(spec);
  member.running = true;
  member.retired = false;
  member.connected = connected;
  ++member.starts;
  member.started_us = MonotonicMicros();
}

void ProcessPool::Assign(ProcessSpec spec, const std::string& tag) {
  const std::string id = spec.id;
  Member& member = members_.at(id);
  if (member.next) {
    member.next = Assignment{std::move(spec), tag};
    return;
  }
  if (member.tag == tag && (member.running || member.restarting)) return;
  member.restarts = 0;
  if (!member.running) {
    member.spec = std::move(spec);
    member.tag = tag;
    if (!member.restarting) StartOrFail(id);
    return;
  }
  StopFor(id, {std::move(spec), tag});
}

void ProcessPool::Renew(const std::string& id) {
  const Member& member = members_.at(id);
  if (member.running && !member.next) StopFor(id, {*member.spec, member.tag});
}

void ProcessPool::StopFor(const std::string& id, Assignment next) {
  Member& member = members_.at(id);
  member.next = std::move(next);
  member.ready = false;
  host_->Send(id, protocol::Stop{});
  loop_->After(kStopGrace, [this, id, start = member.starts] {
    if (members_.at(id).running && members_.at(id).starts == start) host_->Kill(id);
  });
}

void ProcessPool::Start(const std::string& id) {
  Member& member = members_.at(id);
  host_->Start(*member.spec);
  member.running = true;
  member.retired = false;
  ++member.starts;
  member.started_us = MonotonicMicros();
}

void ProcessPool::StartOrFail(const std::string& id) {
  try {
    Start(id);
  } catch (const Error& e) {
    Exited(id, e.what());
  }
}

void ProcessPool::Connected(const std::string& id) { members_.at(id).connected = true; }
void ProcessPool::SetReady(const std::string& id, bool ready) { members_.at(id).ready = ready; }

bool ProcessPool::given_up(const std::string& id) const {
  const Member& member = members_.at(id);
  return !member.running && !member.restarting && !member.next;
}

std::vector<std::string> ProcessPool::NotConnectedFor(int64_t micros, int64_t now) const {
  std::vector<std::string> late;
  for (const auto& [id, member] : members_) {
    if (member.running && !member.connected && now - member.started_us > micros) late.push_back(id);
  }
  return late;
}

bool ProcessPool::HasWant(const std::string& id) const {
  const Member& member = members_.at(id);
  return member.ready && member.wants > 0;
}

bool ProcessPool::TakeWant(const std::string& id) {
  if (!HasWant(id)) return false;
  --members_.at(id).wants;
  return true;
}

void ProcessPool::NoteEnd(const std::string& id, const std::string& how) {
  Member& member = members_.at(id);
  member.running = member.connected = member.ready = false;
  member.wants = 0;
  last_exit_ = member.cause.empty() ? id + ": " + how : id + ": " + member.cause;
  member.cause.clear();
}

void ProcessPool::GaveUp(const std::string& id, const std::string& why) {
  members_.at(id).cause = why;
  NoteEnd(id, why);
  members_.at(id).next.reset();
}

void ProcessPool::Exited(const std::string& id, const std::string& how) {
  NoteEnd(id, how);
  Member& member = members_.at(id);
  if (closing_) return;
  if (member.next) {
    member.spec = std::move(member.next->spec);
    member.tag = std::move(member.next->tag);
    member.next.reset();
    StartOrFail(id);
    return;
  }
  if (member.restarts >= restarts_max_) return;
  member.restarting = true;
  const auto pause = kFirstPause * (1 << std::min(member.restarts, 6));
  ++member.restarts;
  log::Warn("{} ended ({}); starting it again in {} ms ({} of {} restarts)", id, how, pause.count(),
               member.restarts, restarts_max_);
  loop_->After(pause, [this, id] {
    Member& waiting = members_.at(id);
    if (!waiting.restarting) return;  // its host has left meanwhile
    waiting.restarting = false;
    if (!closing_ && !waiting.running) StartOrFail(id);
  });
}

void ProcessPool::Retire(const std::string& id) {
  Member& member = members_.at(id);
  member.running = member.connected = member.ready = member.restarting = false;
  member.next.reset();
  member.wants = member.restarts = 0;
  member.cause.clear();
  member.retired = true;
}

bool ProcessPool::exhausted(const std::function<bool(const std::string& id)>& useless) const {
  bool any = false;
  for (const std::string& id : ids_) {
    if (members_.at(id).retired || (useless && useless(id))) continue;
    if (!given_up(id)) return false;
    any = true;
  }
  return any;
}

}  // namespace evald
