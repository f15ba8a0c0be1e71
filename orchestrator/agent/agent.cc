#include "orchestrator/agent/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/names.h"
#include "base/own_folder.h"
#include "base/random_id.h"
#include "base/socket_directory.h"
#include "base/version.h"
#include "evald/error.h"
#include "orchestrator/agent/clock_offset.h"
#include "orchestrator/agent/courier.h"
#include "orchestrator/agent/peer_listener.h"
#include "orchestrator/agent/process_book.h"
#include "orchestrator/devices/programs.h"
#include "orchestrator/fleet/conversation.h"
#include "orchestrator/fleet/local_agent.h"
#include "orchestrator/fleet/local_host.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/staging/flock.h"
#include "orchestrator/staging/free_space.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::milliseconds kStopGrace{5000};
constexpr std::chrono::milliseconds kFirstRedial{100}, kLongestRedial{5000};
constexpr int64_t kPingMicros = 1'000'000;
// A launched agent that leaves does not wait for longer for an orchestrator that has gone
constexpr int64_t kAloneLeavingMicros = 2'000'000;
constexpr int64_t kHelloMicros = 10'000'000;
constexpr int64_t kRestMicros = 30'000'000;  // for a worker to confirm a revoke
constexpr double kEndlessSeconds = 1e9;      // of a job without a time limit
constexpr size_t kSpansWaitingMax = 10'000;

UniqueFd LockRoot(const fs::path& root) {
  MakePrivateFolder(root, "choose another --root");
  const fs::path file = root / kAgentLock;
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) ThrowErrno(file, "open", errno);
  for (int attempt = 0; ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (attempt == 20) {  // other processes take the lock for a moment, to see whether it is held
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: another agent works from this folder", root.string()),
                  "stop it, or choose another --root");
    }
    ::usleep(20'000);
  }
  return lock;
}

}  // namespace

class Agent::Impl {
 public:
  explicit Impl(AgentOptions options)
      : options_(std::move(options)),
        lock_(LockRoot(options_.root)),
        instance_(RandomId()),
        created_us_(MonotonicMicros()),
        ends_in_s_(options_.ends_at - WallSeconds()),
        dialer_(&loop_, options_.orchestrator),
        last_seen_us_(MonotonicMicros()) {
    LocalHostOptions host;
    host.directory = socket_directory_.path();
    host.binaries = options_.binaries;
    host.log_dir = options_.root / "logs";
    host.metric_arguments = {"--sandbox",     ToJson(options_.sandbox).dump(),
                             "--task-code",   ToJson(options_.task_code).dump(),
                             "--judge-cache", options_.judge_cache.string()};
    MakeDirectories(host.log_dir);
    host_ = std::make_unique<LocalHost>(
        &loop_, host,
        Host::Events{
            [this](const std::string& id, const protocol::Message& m) { OnProcessMessage(id, m); },
            [this](const std::string& id, const ProcessExit& exit) { OnExit(id, exit); }});
    if (!here()) {
      shelf_ = std::make_shared<ChunkShelf>(options_.staging_root);
      Listen();
      MakeCourier();
    }
  }

  // Without a listener this host fetches from others, and gives them nothing.
  void Listen() {
    if (options_.peer_listen == "off") return;
    try {
      listener_.emplace(PeerListenerOptions{options_.peer_listen, options_.peer_host,
                                            options_.peer_rate, options_.root / "peer"},
                        shelf_);
    } catch (const Error& e) {
      if (!options_.peer_listen.empty()) throw;
      log::Warn("other hosts cannot fetch checkpoints from this one: {}", e.what());
    }
  }

  void MakeCourier() {
    StagerOptions staging;
    staging.root = options_.staging_root;
    staging.state = options_.root;
    staging.keep_bytes = options_.staging_keep;
    courier_.emplace(
        &loop_, options_.orchestrator, options_.root / "spool", instance_, staging,
        Courier::Hooks{
            [this](const std::string& id, const protocol::Message& m) { host_->Send(id, m); },
            [this](const std::string& id, const protocol::Message& m) { Tell(id, m); },
            [this](const std::string& id, const protocol::Message& m) {
              book_.Undelivered(id, m);
            }},
        Courier::kFirstPause, shelf_);
  }

  void Run() {
    loop_.OnSignals([this](int) { OnSignal(); });
    Dial();
    Tick();
    loop_.Run();
    if (alone_) throw Error(ErrorKind::kInfrastructure, *alone_);
  }

 private:
  bool here() const { return !options_.orchestrator.socket.empty(); }

  // ---- connections

  void Dial() {
    if (ending_) return;
    dialer_.Dial([this](std::shared_ptr<Wire> wire, const std::string& why) {
      if (ending_) return;
      if (!wire) return Redial(why);
      Greet(std::move(wire));
    });
  }

  void Redial(const std::string& why) {
    if (why != last_failure_) {
      // Of a launched agent, the log tells its launcher's people why it does not come.
      const auto level = options_.launched ? log::Level::kWarn : log::Level::kInfo;
      log::Write(level, "{}: {}", fmt::make_format_args(dialer_.name(), why));
    }
    if (options_.launched && dialer_.refused()) return EndAlone(why);
    last_failure_ = why;
    loop_.After(redial_, [this] { Dial(); });
    if (!here()) redial_ = std::min(redial_ * 2, kLongestRedial);
  }

  void Greet(std::shared_ptr<Wire> wire) {
    greeting_ = wire;
    greeting_since_us_ = MonotonicMicros();
    wire->on_line = [this, weak = std::weak_ptr<Wire>(wire)](const std::string& line) {
      if (const auto strong = weak.lock()) OnWelcome(strong, line);
    };
    wire->on_closed = [this](const std::string& why) {
      greeting_ = nullptr;
      Redial(why.empty() ? "the orchestrator closed the connection" : why);
    };
    protocol::AgentHello hello;
    hello.evald = kEvaldVersion;
    hello.name = options_.name;
    hello.instance = instance_;
    hello.pid = ::getpid();
    hello.session = session_;
    hello.received = conversation_.received();
    hello.config = options_.config_id;
    hello.devices = options_.devices;
    hello.threads = options_.threads;
    hello.metric_processes = options_.metric_processes;
    const double ends_in_s =
        ends_in_s_ - 1e-6 * static_cast<double>(MonotonicMicros() - created_us_);
    if (options_.ends_at > 0 && ends_in_s < kEndlessSeconds)
      hello.ends_in_s = std::max(0.0, ends_in_s);
    if (listener_) {
      hello.peer_port = listener_->port();
      hello.peer_host = options_.peer_host.empty() ? dialer_.local_address() : options_.peer_host;
      hello.peer_authority = listener_->authority();
      hello.peer_secret = listener_->secret();
    }
    wire->Send(protocol::EncodeFrame(0, 0, protocol::EncodeBody(hello)));
    wire->Read();
  }

  void OnWelcome(const std::shared_ptr<Wire>& wire, const std::string& line) {
    protocol::AgentMessage message;
    try {
      message = protocol::DecodeFrame(line).message;
    } catch (const Error& e) {
      return wire->Close(e.what());
    }
    if (const auto* refused = std::get_if<protocol::AgentRefused>(&message)) {
      redial_ = kLongestRedial;
      const std::string why = "it refuses this agent: " + refused->reason;
      if (options_.launched) return EndAlone(why);
      if (why != last_failure_)
        log::Warn("{}: {}; the agent asks again every {} s", dialer_.name(), why,
                  std::chrono::duration_cast<std::chrono::seconds>(kLongestRedial).count());
      last_failure_ = why;
      return wire->Close(why);
    }
    const auto* welcome = std::get_if<protocol::AgentWelcome>(&message);
    if (welcome == nullptr) return wire->Close("the first message must be agent_welcome");
    greeting_ = nullptr;
    clock_ = {};
    if (!welcome->resumed) {
      conversation_.Reset();
      session_ = welcome->session;
    }
    const Conversation::Handlers handlers{
        [this](const protocol::AgentMessage& m) { OnOrchestratorMessage(m); },
        [this](const std::string& why) {
          if (courier_) courier_->SetConnected(false);
          Redial(why);
        }};
    if (!conversation_.Attach(wire, welcome->received, handlers, MonotonicMicros())) {
      session_.clear();
      return wire->Close(
          fmt::format("it has received {} messages, more than were sent", welcome->received));
    }
    redial_ = kFirstRedial;
    last_failure_.clear();
    last_seen_us_ = MonotonicMicros();
    log::Info("{}: connected{}", dialer_.name(), welcome->resumed ? " again" : "");
    if (courier_) courier_->SetConnected(true);
    if (options_.taken) std::exchange(options_.taken, nullptr)();
    if (!welcome->resumed) BeginAnew();
    Ping();
  }

  // ---- another orchestrator

  // Begins with another orchestrator, which does not know the processes' leases. It is told of the
  // processes once their leases are revoked and confirmed: then their files are at rest and can be
  // read.
  void BeginAnew() {
    joined_ = said_left_ = false;
    for (const auto& [id, revoke] : book_.BeginAnew()) host_->Send(id, revoke);
    if (courier_) courier_->BeginAnew();
    rest_until_us_ = MonotonicMicros() + kRestMicros;
    JoinWhenAtRest();
  }

  void JoinWhenAtRest() {
    if (joined_ || session_.empty() || !book_.NotAtRest().empty()) return;
    joined_ = true;
    conversation_.Send(protocol::AgentReady{book_.Processes(), Staged()});
    if (leaving_) conversation_.Send(protocol::AgentLeaving{});
  }

  // Fingerprints of the checkpoints staged here. Empty on the orchestrator's own host, where it
  // knows them.
  std::vector<std::string> Staged() const {
    std::vector<std::string> staged;
    if (here()) return staged;
    try {
      for (const StagedInfo& info : ListStaged(options_.staging_root))
        staged.push_back(info.fingerprint);
    } catch (const Error& e) {  // they are then found when they are to be loaded
      log::Warn("the checkpoints staged here cannot be listed: {}", e.what());
    }
    return staged;
  }

  // ---- messages of processes

  void OnProcessMessage(const std::string& id, const protocol::Message& message) {
    const bool concerns = book_.Received(id, message);
    JoinWhenAtRest();
    if (!concerns || !joined_) return;
    if (courier_) return courier_->FromProcess(id, message);
    Tell(id, message);
  }

  void Tell(const std::string& id, const protocol::Message& message) {
    if (std::holds_alternative<protocol::Progress>(message)) {  // an old one is worthless
      conversation_.SendLoose(protocol::FromProcess{id, message});
    } else if (const auto* span = std::get_if<protocol::Span>(&message)) {
      if (conversation_.waiting() > kSpansWaitingMax) return;
      protocol::Span theirs = *span;  // converted to the orchestrator's clock
      theirs.begin += clock_.offset_us();
      theirs.end += clock_.offset_us();
      conversation_.Send(protocol::FromProcess{id, theirs});
    } else {
      conversation_.Send(protocol::FromProcess{id, message});
    }
  }

  void OnExit(const std::string& id, const ProcessExit& exit) {
    if (!courier_) return TellExit(id, exit);
    courier_->Ended(id, [this, id, exit] { TellExit(id, exit); });
  }

  void TellExit(const std::string& id, const ProcessExit& exit) {
    book_.Ended(id);
    if (joined_)
      conversation_.Send(protocol::ProcessEnded{id, exit.exit_code, exit.signal, exit.error});
    JoinWhenAtRest();
  }

  // ---- messages of the orchestrator

  void OnOrchestratorMessage(const protocol::AgentMessage& message) {
    last_seen_us_ = MonotonicMicros();
    if (const auto* to = std::get_if<protocol::ToProcess>(&message)) {
      book_.Sent(to->process, to->message);
      if (courier_) {
        courier_->ToProcess(to->process, to->message);
      } else {
        host_->Send(to->process, to->message);
      }
    } else if (const auto* start = std::get_if<protocol::StartProcess>(&message)) {
      Start({start->process, start->program, start->arguments, start->tag});
    } else if (const auto* kill = std::get_if<protocol::KillProcess>(&message)) {
      host_->Kill(kill->process);
    } else if (const auto* pong = std::get_if<protocol::AgentPong>(&message)) {
      if (!here()) clock_.Measured(pong->at, pong->now, MonotonicMicros());
    } else if (std::holds_alternative<protocol::AgentStop>(message)) {
      End("the orchestrator told it to");
    }
  }

  void Start(const ProcessSpec& spec) {
    try {
      if (ending_ || leaving_) throw Error(ErrorKind::kInfrastructure, "its host is leaving");
      if (!WrongWithName(spec.id).empty()) {
        throw Error(ErrorKind::kInput,
                    fmt::format("the name of a process: {}", WrongWithName(spec.id)));
      }
      if (!IsStartable(spec.program)) {
        throw Error(ErrorKind::kInput,
                    fmt::format("'{}' is not a program that an agent starts", spec.program));
      }
      if (book_.Knows(spec.id))
        throw Error(ErrorKind::kInternal, fmt::format("{} runs already", spec.id));
      book_.Started(spec);
      host_->Start(spec);
    } catch (const Error& e) {
      log::Error("{}: {}", spec.id, e.what());
      book_.Ended(spec.id);
      conversation_.Send(protocol::ProcessEnded{spec.id, 0, 0, e.what()});
    }
  }

  // ---- time

  void Tick() {
    const int64_t now = MonotonicMicros();
    conversation_.Tick(now);
    if (greeting_ && now - greeting_since_us_ > kHelloMicros) greeting_->Close("no welcome came");
    if (now - pinged_us_ > kPingMicros) Ping();
    if (!joined_ && now > rest_until_us_) {
      for (const std::string& id : book_.NotAtRest()) {
        log::Warn("{} does not confirm that its leases are revoked; it is killed", id);
        host_->Kill(id);
      }
    }
    if (leaving_ && joined_ && book_.idle() && conversation_.waiting() == 0) {
      if (said_left_) return End("no process holds a trial or job any more");
      conversation_.Send(protocol::AgentLeft{});
      said_left_ = true;
    }
    if (leaving_ && options_.launched && !conversation_.attached() &&
        now - last_seen_us_ > kAloneLeavingMicros)
      return End("the orchestrator has gone while this agent left");
    if (!StillNamed(lock_.get(), options_.root / kAgentLock)) return End("its folder is gone");
    if (!conversation_.attached() &&
        static_cast<double>(now - last_seen_us_) > 1e6 * options_.linger_s)
      Linger(now);
    loop_.After(kTick, [this] { Tick(); });
  }

  void Linger(int64_t now) {
    const std::string why =
        fmt::format("no orchestrator for {} s", (now - last_seen_us_) / 1'000'000);
    if (here()) return End(why);
    if (options_.launched) return EndAlone(why);
    for (const std::string& id : book_.ids()) {
      log::Warn("{}; {} ends", why, id);
      host_->Send(id, protocol::Stop{});
    }
    last_seen_us_ = now;
  }

  void Ping() {
    pinged_us_ = MonotonicMicros();
    std::error_code error;
    const fs::space_info space = fs::space(ExistingPartOf(options_.staging_root), error);
    conversation_.SendLoose(protocol::AgentPing{pinged_us_,
                                                error ? 0 : static_cast<int64_t>(space.capacity),
                                                error ? 0 : static_cast<int64_t>(space.available)});
  }

  // ---- the end

  void OnSignal() {
    if (leaving_ || !conversation_.attached()) return End("a signal");
    log::Info("finishing what is under way; a second signal ends at once");
    leaving_ = true;
    if (joined_) conversation_.Send(protocol::AgentLeaving{});
  }

  // A launched agent has no other orchestrator to wait for.
  void EndAlone(const std::string& why) {
    if (!ending_) alone_ = fmt::format("{}: {}", dialer_.name(), why);
    End(why);
  }

  void End(const std::string& why) {
    if (ending_) return;
    ending_ = true;
    log::Info("this agent ends: {}", why);
    host_->StopAll(kStopGrace, [this] { loop_.Stop(); });
  }

  AgentOptions options_;
  UniqueFd lock_;
  Loop loop_;
  SocketDirectory socket_directory_;
  const std::string instance_;
  const int64_t created_us_;
  const double ends_in_s_;  // from created_us_ to the end of this host: the wall clock may be set
  std::string session_;     // of the orchestrator; "" before the first one
  Dialer dialer_;
  std::shared_ptr<Wire> greeting_;
  int64_t greeting_since_us_ = 0;
  std::chrono::milliseconds redial_ = kFirstRedial;
  std::string last_failure_;
  ProcessBook book_;
  Conversation conversation_;
  ClockOffset clock_;
  std::unique_ptr<LocalHost> host_;
  std::shared_ptr<ChunkShelf> shelf_;  // not on the orchestrator's own host
  std::optional<PeerListener> listener_;
  std::optional<Courier> courier_;
  bool joined_ = false;  // the orchestrator knows this agent's processes
  bool leaving_ = false;
  bool said_left_ = false;  // to the orchestrator that is connected
  bool ending_ = false;
  std::optional<std::string> alone_;  // why a launched agent ends
  int64_t rest_until_us_ = 0;
  int64_t pinged_us_ = 0;
  int64_t last_seen_us_;
};

Agent::Agent(AgentOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Agent::~Agent() = default;
void Agent::Run() { impl_->Run(); }

}  // namespace evald
