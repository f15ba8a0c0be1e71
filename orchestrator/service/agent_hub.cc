#include "orchestrator/service/agent_hub.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <fstream>

#include "base/clock.h"
#include "base/log.h"
#include "base/random_id.h"
#include "base/text.h"
#include "base/version.h"
#include "evald/error.h"
#include "orchestrator/fleet/peer_user.h"
#include "orchestrator/fleet/stream_wire.h"
#include "orchestrator/service/process_id.h"
#include "protocol/channel.h"

namespace evald {
namespace fs = std::filesystem;
using Unix = boost::asio::local::stream_protocol;

namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr int64_t kHelloMicros = 10'000'000;
constexpr int64_t kSpawnPauseMicros = 10'000'000;  // for an agent to say hello, before another is started
constexpr int kSpawnsMax = 5;
constexpr std::chrono::milliseconds kPoll{20};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr size_t kDevicesMax = 1024;
constexpr size_t kRefusalsMax = 100;
constexpr int64_t kEndedPauseMicros = 250'000;  // after one that ended without a hello; doubled each time
constexpr uint64_t kLogTailBytes = 4096;
constexpr int64_t kStopSlackMicros = 3'000'000;

void SendLoose(Wire* wire, const protocol::AgentMessage& message) {
  wire->Send(protocol::EncodeFrame(0, 0, protocol::EncodeBody(message)));
}

// The last line of a log; "" when there is none.
std::string LastLine(const fs::path& file) {
  std::ifstream log(file, std::ios::binary | std::ios::ate);
  const auto bytes = static_cast<uint64_t>(std::max<std::streamoff>(0, log.tellg()));
  log.seekg(static_cast<std::streamoff>(bytes - std::min(bytes, kLogTailBytes)));
  std::string last;
  for (std::string line; std::getline(log, line);) {
    if (!Trim(line).empty()) last = line;
  }
  return last;
}

}  // namespace

// The Unix socket for the agent of this host.
struct AgentHub::Listener {
  Listener(Loop* loop, const fs::path& path, std::function<void(std::shared_ptr<Wire>)> take)
      : path(path), acceptor(loop->context()), loop(loop), take(std::move(take)) {
    ::unlink(path.c_str());  // of an orchestrator that was killed; the state folder is ours alone
    try {
      const protocol::SocketName name(path);
      acceptor.open();
      acceptor.bind(Unix::endpoint(name.text()));
      ::chmod(path.c_str(), 0600);
      acceptor.listen();
    } catch (const boost::system::system_error& e) {
      throw Error(ErrorKind::kInfrastructure, fmt::format("cannot listen at {}: {}", path.string(), e.what()));
    }
    Accept();
  }
  ~Listener() { ::unlink(path.c_str()); }

  void Accept() {
    acceptor.async_accept([this](const boost::system::error_code& error, Unix::socket socket) {
      if (error == boost::asio::error::operation_aborted) return;
      const LoopTurn turn("an agent that connects");
      if (error) return loop->After(kAcceptPause, [this] { Accept(); });
      if (IsOwnUser(socket.native_handle())) take(std::make_shared<StreamWire<Unix::socket>>(std::move(socket)));
      Accept();
    });
  }

  fs::path path;
  Unix::acceptor acceptor;
  Loop* loop;
  std::function<void(std::shared_ptr<Wire>)> take;
};

AgentHub::AgentHub(Loop* loop, Fleet* fleet, LocalAgent local)
    : loop_(loop), fleet_(fleet), local_(std::move(local)), session_(RandomId()) {
  listener_ = std::make_unique<Listener>(loop_, local_.state_dir / kAgentSocket,
                                         [this](std::shared_ptr<Wire> wire) { Take(std::move(wire), false); });
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

void AgentHub::Take(std::shared_ptr<Wire> wire, bool network) {
  Wire* raw = wire.get();
  guests_[raw] = {wire, MonotonicMicros()};
  wire->on_line = [this, raw, network](const std::string& line) {
    const std::shared_ptr<Wire> wire = guests_.at(raw).wire;
    guests_.erase(raw);
    wire->on_line = nullptr;
    wire->on_closed = nullptr;
    OnHello(wire, network, line);
  };
  wire->on_closed = [this, raw](const std::string&) { guests_.erase(raw); };
  wire->Read();
}

void AgentHub::OnHello(const std::shared_ptr<Wire>& wire, bool network, const std::string& line) {
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
  if (const std::string reason = ReasonAgainst(hello, network); !reason.empty()) {
    return Refuse(wire, hello.name, reason);
  }
  if (!network && (hello.config != local_.Config() || hello.evald != kEvaldVersion)) {
    log::Info("the agent of this host was started otherwise; it gives way to a new one");
    SendLoose(wire.get(), protocol::AgentWelcome{session_, false, 0});
    return wire->Send(protocol::EncodeFrame(1, 0, protocol::EncodeBody(protocol::AgentStop{})));
  }
  Join(wire, hello);
}

void AgentHub::Refuse(const std::shared_ptr<Wire>& wire, const std::string& name, const std::string& reason) {
  log::Warn("agent '{}' is refused: {}", name, reason);
  if (refusals_.size() < kRefusalsMax || refusals_.count(name) > 0) {
    refusals_[protocol::IsHostName(name) ? name : ""] = {reason, WallSeconds()};
  }
  SendLoose(wire.get(), protocol::AgentRefused{reason});  // it closes
}

std::string AgentHub::ReasonAgainst(const protocol::AgentHello& hello, bool network) const {
  if (hello.version != protocol::kAgentVersion) {
    return fmt::format("protocol version {}, expected {}", hello.version, protocol::kAgentVersion);
  }
  if (network && hello.evald != kEvaldVersion) {
    return fmt::format("it is evald {}, and this is {}; both must be the same", hello.evald, kEvaldVersion);
  }
  if (!protocol::IsHostName(hello.name) || network == (hello.name == kLocalHost)) {
    return fmt::format("'{}' is not a name for it: expected letters, digits, '-' and '_', and not '{}'", hello.name,
                       kLocalHost);
  }
  if (hello.devices.size() > kDevicesMax || hello.metric_processes < 0 ||
      hello.metric_processes > static_cast<int>(kDevicesMax)) {
    return fmt::format("more than {} devices or metric processes", kDevicesMax);
  }
  const auto member = members_.find(hello.name);
  if (member != members_.end() && member->second.hello.instance != hello.instance &&
      member->second.host->conversation().attached()) {
    return fmt::format("another agent called '{}' is connected", hello.name);
  }
  return "";
}

// The name is its own: goes on where the last connection ended, or begins anew.
void AgentHub::Join(const std::shared_ptr<Wire>& wire, const protocol::AgentHello& hello) {
  const std::string name = hello.name;
  refusals_.erase(name);
  Member& member = members_[name];
  if (!member.host) {
    member.host = std::make_unique<RemoteHost>(
        fleet_->EventsOf(name), [this, name](std::chrono::milliseconds grace, std::function<void()> done) {
          StopMember(name, grace, std::move(done));
        });
  }
  Conversation& conversation = member.host->conversation();
  const bool resumed = hello.session == session_ && hello.instance == member.hello.instance;
  conversation.Cut("replaced by a newer connection");
  if (!resumed) {
    conversation.Reset();
    member.hello = hello;
    member.ready = false;
    if (name != kLocalHost) member.host->Grant(&files_, hello.instance);
    fleet_->AddHost(member.host.get(), {name, hello.devices, hello.threads, hello.metric_processes});
  }
  SendLoose(wire.get(), protocol::AgentWelcome{session_, resumed, conversation.received()});
  const Conversation::Handlers handlers{[this, name](const protocol::AgentMessage& m) { Deliver(name, m); },
                                        [this, name](const std::string& why) {
                                          if (fleet_->HostState(name) == "left") return;
                                          log::Info("the agent of '{}' is away: {}", name, why.empty() ? "it closed" : why);
                                          fleet_->HostIs(name, HostNews::kAway);
                                        }};
  if (!conversation.Attach(wire, resumed ? hello.received : 0, handlers, MonotonicMicros())) {
    log::Warn("agent '{}' has received {} messages, more than were sent", name, hello.received);
    member.hello.instance.clear();  // the next connection begins anew
    return wire->Close("");
  }
  if (resumed && member.ready && fleet_->HostState(name) != "left") fleet_->HostIs(name, HostNews::kBack);
}

// An agent whose message cannot be taken as it is begins anew: no other agent, and not the service, ends over it.
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
    log::Info("host '{}' is there with {} devices and {} running processes", name, member.hello.devices.size(),
                 ready->processes.size());
    member.ready = true;
    if (name == kLocalHost) spawns_ = 0;
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
    if (now - guest.since_us > kHelloMicros) guest.wire->Close("no hello came");
  }
  if (keep_local_) KeepLocal(now);
  loop_->After(kTick, [this, alive = alive_] {
    if (*alive) Tick();
  });
}

void AgentHub::KeepLocal(int64_t now) {
  const auto member = members_.find(kLocalHost);
  if (member != members_.end() && member->second.host->conversation().attached()) return;
  const int64_t pause = LocalAgent::Lives(spawned_) ? kSpawnPauseMicros : kEndedPauseMicros << spawns_;
  if (spawned_us_ != 0 && now - spawned_us_ < pause && spawns_ > 0) return;
  if (local_.Runs()) return;  // it will call
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
  const std::string last = LastLine(file);
  local_failed_(Error(ErrorKind::kInfrastructure,
                      fmt::format("the agent of this host, whose children workers are, ended {} times before it said hello{}{}",
                                  kSpawnsMax, last.empty() ? "" : "; its last words: ", last),
                      fmt::format("see {}", file.string())));
}

// ---- the end

// Other hosts' agents stay, with their workers: another orchestrator may come.
void AgentHub::StopMember(const std::string& name, std::chrono::milliseconds grace, std::function<void()> done) {
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

Json AgentHub::Refusals() const {
  Json refusals = Json::array();
  for (const auto& [name, refusal] : refusals_) {
    refusals.push_back({{"name", name}, {"reason", refusal.first}, {"at", refusal.second}});
  }
  return refusals;
}

Json AgentHub::About(const std::string& host) const {
  const auto member = members_.find(host);
  if (member == members_.end()) return Json::object();
  return {{"pid", member->second.hello.pid},
          {"version", member->second.hello.evald},
          {"shared_memory", {{"total", member->second.memory_total}, {"free", member->second.memory_free}}}};
}

}  // namespace evald
