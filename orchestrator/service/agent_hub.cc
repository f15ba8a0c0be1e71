#include "orchestrator/service/agent_hub.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/last_lines.h"
#include "base/log.h"
#include "base/random_id.h"
#include "base/text.h"
#include "base/version.h"
#include "evald/error.h"
#include "orchestrator/fleet/job_holder.h"
#include "orchestrator/fleet_machine/events.h"
#include "orchestrator/service/agent_listener.h"
#include "orchestrator/service/process_id.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kAliveEvery{100};
constexpr int64_t kAgentHelloMicros = 10'000'000;
// Time to say hello, before another agent is started
constexpr int64_t kSpawnPauseMicros = 10'000'000;
constexpr int kSpawnsMax = 5;
constexpr std::chrono::milliseconds kPoll{20};
constexpr size_t kHostsMax = 128;   // hosts of one token, also those that are away
constexpr size_t kSlotsMax = 4096;  // devices and metric processes of those hosts
// For a host that is away or has left
constexpr int64_t kForgetMicros = int64_t{30} * 60 * 1'000'000;
constexpr size_t kRefusalsMax = 100;
// After an agent that ended without a hello; doubled each time
constexpr int64_t kEndedPauseMicros = 250'000;
constexpr int64_t kStopSlackMicros = 3'000'000;

void SendLoose(Wire* wire, const protocol::AgentMessage& message) {
  wire->Send(protocol::EncodeFrame(0, 0, protocol::EncodeBody(message)));
}

}  // namespace

AgentHub::AgentHub(Loop* loop, Fleet* fleet, LocalAgent local)
    : loop_(loop), fleet_(fleet), local_(std::move(local)), session_(RandomId()) {
  listener_ = std::make_unique<AgentListener>(
      loop_, local_.state_dir / kAgentSocket,
      [this](std::shared_ptr<Wire> wire) { Take(std::move(wire), std::nullopt); });
}

AgentHub::~AgentHub() {
  *alive_ = false;
  for (auto& [wire, guest] : guests_) {
    guest.wire->on_line = nullptr;
    guest.wire->on_closed = nullptr;
    guest.wire->Close("");
  }
}

void AgentHub::Start(std::function<void(const Error& why)> failed) {
  local_failed_ = std::move(failed);
  keep_local_ = true;
  Tick();
}

// ---- beginning a connection

void AgentHub::Take(std::shared_ptr<Wire> wire, std::optional<std::string> owner) {
  Wire* raw = wire.get();
  guests_[raw] = {wire, MonotonicMicros()};
  wire->on_line = [this, raw, owner = std::move(owner)](const std::string& line) {
    const std::shared_ptr<Wire> wire = guests_.at(raw).wire;
    const std::optional<std::string> of = owner;  // a copy: the handler is destroyed below
    guests_.erase(raw);
    wire->on_line = nullptr;
    wire->on_closed = nullptr;
    OnHello(wire, of, line);
  };
  wire->on_closed = [this, raw](const std::string&) { guests_.erase(raw); };
  wire->Read();
}

void AgentHub::OnHello(const std::shared_ptr<Wire>& wire, const std::optional<std::string>& owner,
                       const std::string& line) {
  protocol::AgentHello hello;
  try {
    const protocol::Frame frame = protocol::DecodeFrame(line);
    const auto* said = std::get_if<protocol::AgentHello>(&frame.message);
    if (said == nullptr) return wire->Close("the first message must be agent_hello");
    hello = *said;
  } catch (const Error& e) {
    log::Warn("a connection that is no agent's: {}", e.what());
    return wire->Close("");
  }
  if (const std::string reason = ReasonAgainst(hello, owner); !reason.empty()) {
    return Refuse(wire, hello.name, owner, reason);
  }
  if (!owner && (hello.config != local_.Config() || hello.evald != kEvaldVersion)) {
    log::Info("the agent of this host was started otherwise; it gives way to a new one");
    SendLoose(wire.get(), protocol::AgentWelcome{session_, false, 0});
    return wire->Send(protocol::EncodeFrame(1, 0, protocol::EncodeBody(protocol::AgentStop{})));
  }
  Join(wire, owner, hello);
}

void AgentHub::Refuse(const std::shared_ptr<Wire>& wire, const std::string& name,
                      const std::optional<std::string>& owner, const std::string& reason) {
  log::Warn("agent '{}' is refused: {}", name, reason);
  if (refusals_.size() < kRefusalsMax || refusals_.count(name) > 0) {
    refusals_[protocol::IsHostName(name) ? name : ""] = {reason, WallSeconds(), owner};
  }
  SendLoose(wire.get(), protocol::AgentRefused{reason});  // the agent closes the connection
}

std::string AgentHub::ReasonAgainst(const protocol::AgentHello& hello,
                                    const std::optional<std::string>& owner) const {
  const bool network = owner.has_value();
  if (hello.version != protocol::kAgentVersion) {
    return fmt::format("protocol version {}, expected {}", hello.version, protocol::kAgentVersion);
  }
  if (network && hello.evald != kEvaldVersion) {
    return fmt::format(
        "it is evald {}, and this is {}; both must be the same: install {} there, or "
        "name its program (`evald` of the launcher)",
        PrintableLine(Shortened(hello.evald, 60)), kEvaldVersion, kEvaldVersion);
  }
  if (!protocol::IsHostName(hello.name) || network == (hello.name == kLocalHost)) {
    return fmt::format(
        "'{}' is not a name for it: expected letters, digits, '-' and '_', and not '{}'",
        hello.name, kLocalHost);
  }
  if (network && job_tokens_ != nullptr && !job_tokens_->MayBeCalled(*owner, hello.name))
    return fmt::format("'{}' is the name of a host of another token", hello.name);
  if (network && job_tokens_ != nullptr) {
    const std::string wrong = job_tokens_->WrongWithDevices(*owner, hello.devices);
    if (!wrong.empty()) return wrong;
    const std::optional<int> nodes = job_tokens_->NodesOf(*owner);
    if (nodes && ConnectedBeside(hello.name, *owner) >= *nodes)
      return fmt::format("its job is for {} host{}, and has brought as many", *nodes,
                         *nodes == 1 ? "" : "s");
  }
  if (hello.instance.empty()) return "it does not say which agent it is";
  for (const auto& [name, other] : members_) {
    if (name != hello.name && other.hello.instance == hello.instance)
      return "another agent is called as this one is";
  }
  const auto member = members_.find(hello.name);
  if (member != members_.end() && member->second.hello.instance != hello.instance &&
      member->second.host->conversation().attached()) {
    return fmt::format("another agent called '{}' is connected", hello.name);
  }
  if (member != members_.end() && member->second.owner != owner &&
      fleet_->HostState(hello.name) != "left") {
    return fmt::format("'{}' is a host of another token", hello.name);
  }
  return network ? TooMuchOf(hello, owner) : "";
}

// Connected hosts of the token under other names.
int AgentHub::ConnectedBeside(const std::string& name, const std::string& owner) const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [&](const auto& entry) {
    return entry.first != name && entry.second.owner == owner &&
           entry.second.host->conversation().attached();
  }));
}

// Anyone with a worker token can give an agent any name and claim any devices. Each takes memory
// and time of the service, so both are limited.
std::string AgentHub::TooMuchOf(const protocol::AgentHello& hello,
                                const std::optional<std::string>& owner) const {
  const auto slots_of = [](const protocol::AgentHello& of) {
    return of.devices.size() + static_cast<size_t>(of.metric_processes);
  };
  size_t hosts = 1, slots = slots_of(hello);
  for (const auto& [name, member] : members_) {
    if (name == hello.name || member.owner != owner) continue;
    ++hosts;
    slots += slots_of(member.hello);
  }
  if (hosts > kHostsMax)
    return fmt::format("its token has {} other hosts, which is the most; use another token",
                       kHostsMax);
  if (slots > kSlotsMax) {
    return fmt::format(
        "the hosts of its token would have {} devices and metric processes, at most {} are taken; "
        "use "
        "another token",
        slots, kSlotsMax);
  }
  return "";
}

// The agent may have the name: its conversation goes on after the last connection, or begins anew.
void AgentHub::Join(const std::shared_ptr<Wire>& wire, const std::optional<std::string>& owner,
                    const protocol::AgentHello& hello) {
  const std::string name = hello.name;
  refusals_.erase(name);
  Member& member = members_[name];
  if (!member.host) {
    member.host = std::make_unique<RemoteHost>(
        fleet_->EventsOf(name),
        [this, name](std::chrono::milliseconds grace, std::function<void()> done) {
          StopMember(name, grace, std::move(done));
        });
  }
  Conversation& conversation = member.host->conversation();
  const bool resumed = hello.session == session_ && hello.instance == member.hello.instance &&
                       member.owner == owner && !conversation.lost();
  member.away_since_us = 0;
  conversation.Cut("replaced by a newer connection");
  if (!resumed) {
    conversation.Reset();
    member.hello = hello;
    member.owner = owner;
    member.ready = false;
    if (name == kLocalHost) {
      member.host->Follow(files_.get());
    } else {
      member.host->Grant(files_.get(), hello.instance, owner.value_or(""));
    }
    fleet_->AddHost(member.host.get(), {name, hello.devices, hello.threads, hello.metric_processes,
                                        owner.value_or("")});
  }
  if (name != kLocalHost) {
    files_->sources().Offers(
        hello.instance, name,
        {PeerUrl(hello.peer_host, hello.peer_port), hello.peer_authority, hello.peer_secret});
  }
  fleet_->HostEnds(name, hello.ends_in_s);
  SendLoose(wire.get(), protocol::AgentWelcome{session_, resumed, conversation.received()});
  const Conversation::Handlers handlers{
      [this, name](const protocol::AgentMessage& m) { Deliver(name, m); },
      [this, name](const std::string& why) {
        files_->sources().SetConnected(members_.at(name).hello.instance, false);
        if (fleet_->HostState(name) == "left") return;
        log::Info("the agent of '{}' is away: {}", name, why.empty() ? "it closed" : why);
        fleet_->HostIs(name, HostNews::kAway);
      }};
  if (!conversation.Attach(wire, resumed ? hello.received : 0, handlers, MonotonicMicros())) {
    log::Warn("agent '{}' has received {} messages, more than were sent", name, hello.received);
    member.hello.instance.clear();  // the next connection begins anew
    return wire->Close("");
  }
  files_->sources().SetConnected(hello.instance, true);
  if (resumed && member.ready && fleet_->HostState(name) != "left")
    fleet_->HostIs(name, HostNews::kBack);
}

// If an agent's message cannot be taken, that agent's conversation begins anew. Other agents and
// the service go on.
void AgentHub::Deliver(const std::string& name, const protocol::AgentMessage& message) {
  try {
    OnMessage(name, message);
  } catch (const std::exception& e) {
    log::Error("agent '{}': {}", name, e.what());
    Member& member = members_.at(name);
    member.hello.instance.clear();
    member.host->conversation().Cut(std::string("a message cannot be taken: ") + e.what());
  }
}

void AgentHub::OnMessage(const std::string& name, const protocol::AgentMessage& message) {
  Member& member = members_.at(name);
  if (const auto* ping = std::get_if<protocol::AgentPing>(&message)) {
    member.memory_total = ping->memory_total;
    member.memory_free = ping->memory_free;
    member.host->conversation().SendLoose(protocol::AgentPong{ping->at, MonotonicMicros()});
  } else if (const auto* ready = std::get_if<protocol::AgentReady>(&message)) {
    log::Info("host '{}' is there with {} devices and {} running processes", name,
              member.hello.devices.size(), ready->processes.size());
    member.ready = true;
    if (name == kLocalHost) spawns_ = 0;
    files_->sources().Holds(member.hello.instance, ready->staged);
    fleet_->HostReady(name, ready->processes, ready->staged);
  } else if (std::holds_alternative<protocol::AgentLeaving>(message)) {
    fleet_->HostIs(name, HostNews::kLeaving);
  } else if (std::holds_alternative<protocol::AgentLeft>(message)) {
    log::Info("host '{}' has left", name);
    fleet_->HostIs(name, HostNews::kLeft);
  } else if (member.ready) {
    member.host->Deliver(message);
  }
}

// ---- time

void AgentHub::Tick() {
  const int64_t now = MonotonicMicros();
  for (auto& [name, member] : members_) member.host->conversation().Tick(now);
  const auto guests = guests_;
  for (const auto& [raw, guest] : guests) {
    if (now - guest.since_us > kAgentHelloMicros) guest.wire->Close("no hello came");
  }
  ForgetAway(now);
  if (keep_local_) KeepLocal(now);
  loop_->After(kAliveEvery, [this, alive = alive_] {
    if (*alive) Tick();
  });
}

// Forgets hosts that were away for long. Their work went to others long before.
void AgentHub::ForgetAway(int64_t now) {
  for (auto member = members_.begin(); member != members_.end();) {
    const auto next = std::next(member);
    auto& [name, of] = *member;
    if (of.host->conversation().attached() || !of.owner) {
      of.away_since_us = 0;
    } else if (of.away_since_us == 0) {
      of.away_since_us = now;
    } else if (now - of.away_since_us > kForgetMicros && fleet_->ForgetHost(name)) {
      log::Info("host '{}' has been away for {} minutes and is forgotten", name,
                kForgetMicros / 60'000'000);
      members_.erase(member);
    }
    member = next;
  }
}

void AgentHub::KeepLocal(int64_t now) {
  const auto member = members_.find(kLocalHost);
  if (member != members_.end() && member->second.host->conversation().attached()) return;
  const int64_t pause =
      LocalAgent::Lives(spawned_) ? kSpawnPauseMicros : kEndedPauseMicros << spawns_;
  if (spawned_us_ != 0 && now - spawned_us_ < pause && spawns_ > 0) return;
  if (local_.Runs()) return;  // it will connect
  if (++spawns_ > kSpawnsMax) return LocalFailed();
  spawned_us_ = now;
  try {
    spawned_ = local_.Spawn();
  } catch (const Error& e) {
    log::Error("{}", e.what());
    spawned_ = 0;
  }
}

void AgentHub::LocalFailed() {
  keep_local_ = false;
  const fs::path file = local_.state_dir / "logs" / "agent.log";
  const std::vector<std::string> last = LastLines(file, 1);
  local_failed_(
      Error(ErrorKind::kInfrastructure,
            fmt::format("the agent of this host, the parent of its workers, ended {} "
                        "times before it said hello{}{}",
                        kSpawnsMax, last.empty() ? "" : "; its last words: ", fmt::join(last, "")),
            fmt::format("see {}", file.string())));
}

// ---- the end

void AgentHub::StopHost(const std::string& host) {
  const auto member = members_.find(host);
  if (member == members_.end()) return;
  fleet_->HostIs(host, HostNews::kLeft);  // the ends of its processes are no news
  member->second.host->conversation().Send(protocol::AgentStop{});
}

void AgentHub::StopLaunched() {
  for (auto& [name, member] : members_) {
    if (IsLaunched(member)) StopHost(name);
  }
}

bool AgentHub::LaunchedConnected() const {
  return std::any_of(members_.begin(), members_.end(), [](const auto& entry) {
    return IsLaunched(entry.second) && entry.second.host->conversation().attached();
  });
}

bool AgentHub::IsLaunched(const Member& member) {
  return member.owner && IsJobHolder(*member.owner);
}

void AgentHub::Expel(const std::string& host, const std::string& why) {
  for (auto& [name, member] : members_) {
    if (member.owner != JobHolder(host)) continue;
    if (fleet_->HostState(name) != "left") {
      log::Info("host '{}' is over: {}", name, why);
      fleet_->HostIs(name, HostNews::kLeft);
    }
    member.host->conversation().Cut(why);
  }
}

// Agents of other hosts stay, with their workers: another orchestrator may come.
void AgentHub::StopMember(const std::string& name, std::chrono::milliseconds grace,
                          std::function<void()> done) {
  if (name != kLocalHost) return done();
  keep_local_ = false;
  members_.at(name).host->conversation().Send(protocol::AgentStop{});
  WaitForEnd(MonotonicMicros() + grace.count() * 1000 + kStopSlackMicros, std::move(done));
}

void AgentHub::WaitForEnd(int64_t until_us, std::function<void()> done) {
  if (!local_.Runs() || MonotonicMicros() > until_us) return done();
  loop_->After(kPoll, [this, alive = alive_, until_us, done = std::move(done)]() mutable {
    if (*alive) WaitForEnd(until_us, std::move(done));
  });
}

std::string AgentHub::RefusalOf(const std::string& host) const {
  const auto refusal = refusals_.find(host);
  const bool its_own = refusal != refusals_.end() && refusal->second.owner == JobHolder(host);
  return its_own ? refusal->second.reason : "";
}

Json AgentHub::Refusals() const {
  Json refusals = Json::array();
  for (const auto& [name, refusal] : refusals_) {
    refusals.push_back({{"name", name}, {"reason", refusal.reason}, {"at", refusal.at}});
  }
  return refusals;
}

Json AgentHub::About(const std::string& host) const {
  const auto member = members_.find(host);
  if (member == members_.end()) return Json::object();
  return {{"pid", member->second.hello.pid},
          {"version", member->second.hello.evald},
          {"shared_memory",
           {{"total", member->second.memory_total}, {"free", member->second.memory_free}}}};
}

}  // namespace evald
