#include "orchestrator/fleet/local_host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <map>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/names.h"
#include "evald/error.h"
#include "orchestrator/devices/programs.h"
#include "orchestrator/fleet/peer_user.h"
#include "orchestrator/fleet/process_end.h"
#include "orchestrator/fleet/stream_wire.h"

namespace evald {
namespace asio = boost::asio;
namespace process = boost::process::v2;
namespace fs = std::filesystem;
using Unix = asio::local::stream_protocol;
using ErrorCode = boost::system::error_code;

namespace {

// Time for bytes still buffered in a socket whose child has ended; then it is closed.
constexpr std::chrono::milliseconds kDrainAfterExit{2000};
constexpr std::chrono::milliseconds kLookPause{10};
constexpr int kLooksAfterExit = 5;
constexpr std::chrono::milliseconds kAcceptPause{100};

// Runs in the child between fork and exec: its own process group, SIGKILL when the parent dies, and
// none of the parent's sockets, on which another process could not listen as long as it lives.
struct ChildSetup {
  pid_t parent = ::getpid();
  ErrorCode on_exec_setup(process::posix::default_launcher&, const process::filesystem::path&,
                          const char* const*&) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    return {};
  }
};

// Takes the value of --settings out of the arguments, to be given on standard input: every user may
// read a process's command line, and settings may hold keys. Nothing if there is none.
std::optional<std::string> TakeSettings(std::vector<std::string>* arguments) {
  const auto flag = std::find(arguments->begin(), arguments->end(), "--settings");
  if (flag == arguments->end() || flag + 1 == arguments->end()) return std::nullopt;
  return std::exchange(*(flag + 1), "-");
}

ProcessExit FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

}  // namespace

std::string ToString(const ProcessExit& exit) {
  if (!exit.error.empty()) return exit.error;
  return exit.signal != 0 ? fmt::format("killed by signal {}", exit.signal)
                          : fmt::format("exit status {}", exit.exit_code);
}

class LocalHost::Impl : public std::enable_shared_from_this<LocalHost::Impl> {
 public:
  Impl(Loop* loop, LocalHostOptions options, Events events)
      : loop_(loop),
        options_(std::move(options)),
        socket_path_(options_.directory / "agent.sock"),
        events_(std::move(events)),
        acceptor_(loop->context()) {
    try {
      acceptor_.open();
      acceptor_.bind(Unix::endpoint(socket_path_.string()));
      acceptor_.listen();
    } catch (const std::exception& e) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("cannot listen at {}: {}", socket_path_.string(), e.what()));
    }
  }

  void Accept() {
    acceptor_.async_accept(
        [self = shared_from_this()](const ErrorCode& error, Unix::socket socket) {
          if (error == asio::error::operation_aborted || !self->acceptor_.is_open()) return;
          const LoopTurn turn("a process that connects");
          if (error) {  // for example no descriptor is left: other connections may close
            log::Warn("accepting a connection failed: {}", error.message());
            return self->loop_->After(kAcceptPause, [self] { self->Accept(); });
          }
          // The socket's folder belongs to this user alone. This check holds even if the folder
          // changes.
          if (IsOwnUser(socket.native_handle()))
            self->Welcome(std::make_shared<StreamWire<Unix::socket>>(std::move(socket)));
          self->Accept();
        });
  }

  void Start(const ProcessSpec& spec) {
    const fs::path log_path = options_.log_dir / (FolderNameOf(spec.id) + ".log");
    UniqueFd log(
        ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!log) ThrowErrno(log_path, "open the log", errno);
    const fs::path program = ProgramPath(options_.binaries, spec.program);
    std::vector<std::string> arguments = spec.arguments;
    const std::optional<std::string> settings = TakeSettings(&arguments);
    const UniqueFd input =
        settings ? MemoryFile(*settings) : UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!input) ThrowErrno("/dev/null", "open", errno);
    if (spec.program == "evald-metric") {
      arguments.insert(arguments.end(), options_.metric_arguments.begin(),
                       options_.metric_arguments.end());
    }
    arguments.insert(arguments.end(), {"--socket", socket_path_.string(), "--id", spec.id});
    auto child = std::make_shared<Child>();
    try {
      process::process started(loop_->context(), process::filesystem::path(program.string()),
                               arguments, process::process_stdio{input.get(), log.get(), log.get()},
                               ChildSetup{});
      child->pid = started.id();
      WhenEnded(loop_->context(), child->pid,
                [self = shared_from_this(), id = spec.id, child](int status) {
                  self->Ended(id, child, status);
                });
      started.detach();  // until then its end of scope kills the process
    } catch (const std::exception& e) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("cannot start {}: {}", program.string(), e.what()),
                  "build all programs (ninja) or check that the binaries lie side by side");
    }
    children_[spec.id] = child;
  }

  void Send(const std::string& id, const protocol::Message& message) {
    const auto child = children_.find(id);
    if (child != children_.end() && child->second->wire) {
      child->second->wire->Send(protocol::Encode(message));
    }
  }

  void Kill(const std::string& id) {
    const auto child = children_.find(id);
    if (child == children_.end() || child->second->exit) return;
    const pid_t pid = child->second->pid;
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
  }

  void StopAll(std::chrono::milliseconds grace, std::function<void()> done) {
    on_all_ended_ = std::move(done);
    for (const auto& [id, child] : children_) {
      if (child->wire) {
        Send(id, protocol::Stop{});
      } else {
        Kill(id);
      }
    }
    loop_->After(grace, [self = shared_from_this()] { self->KillAll(); });
    NotifyIfAllEnded();
  }

  void KillAll() {
    for (const auto& [id, child] : children_) Kill(id);
  }

  void Shutdown() {
    events_ = {};
    on_all_ended_ = nullptr;
    ErrorCode ignored;
    acceptor_.close(ignored);
    KillAll();
    for (const auto& [id, child] : children_) {
      if (child->wire) child->wire->Close("");
    }
    ::unlink(socket_path_.c_str());
  }

 private:
  struct Child {
    pid_t pid = 0;
    std::shared_ptr<Wire> wire;
    std::optional<ProcessExit> exit;
    bool met = false;  ///< it had a connection
  };

  // The message in `line`. If it has none, nothing, and the wire is closed.
  static std::optional<protocol::Message> Understand(Wire* wire, const std::string& line) {
    try {
      return protocol::Decode(line);
    } catch (const Error& e) {
      wire->Close(std::string("it does not keep to the protocol: ") + e.what());
      return std::nullopt;
    }
  }

  // A connection belongs to no process until its Hello names a running child.
  void Welcome(const std::shared_ptr<Wire>& wire) {
    std::weak_ptr<Wire> weak = wire;
    wire->on_line = [this, weak](const std::string& line) {
      const auto strong = weak.lock();
      const auto message = strong ? Understand(strong.get(), line) : std::nullopt;
      if (!message) return;
      const auto* hello = std::get_if<protocol::Hello>(&*message);
      if (hello == nullptr) return strong->Close("the first message must be hello");
      if (hello->version != protocol::kVersion) {
        return strong->Close(
            fmt::format("protocol version {}, expected {}", hello->version, protocol::kVersion));
      }
      const auto child = children_.find(hello->id);
      if (child == children_.end() || child->second->wire) {
        return strong->Close(fmt::format("hello from '{}', which is not expected", hello->id));
      }
      Attach(hello->id, child->second, strong);
      if (events_.message) events_.message(hello->id, *message);
    };
    wire->on_closed = [](const std::string& why) {
      if (!why.empty()) log::Warn("a connection ended before its hello: {}", why);
    };
    wire->Read();
  }

  void Attach(const std::string& id, const std::shared_ptr<Child>& child,
              const std::shared_ptr<Wire>& wire) {
    child->wire = wire;
    child->met = true;
    wire->on_closed = [this, self = shared_from_this(), id, child](const std::string& why) {
      if (!why.empty()) log::Warn("connection of {} ended: {}", id, why);
      child->wire = nullptr;
      if (!child->exit) Kill(id);  // without a connection the process cannot work for us
      EndIfQuiet(id, child);
    };
    wire->on_line = [this, id, weak = std::weak_ptr<Wire>(wire)](const std::string& line) {
      const auto strong = weak.lock();
      const auto message = strong ? Understand(strong.get(), line) : std::nullopt;
      if (message && events_.message) events_.message(id, *message);
    };
  }

  void Ended(const std::string& id, const std::shared_ptr<Child>& child, int status) {
    const LoopTurn turn("the end of process", id);
    child->exit = status < 0 ? ProcessExit{0, SIGKILL} : FromWaitStatus(status);
    if (child->met) {
      EndIfQuiet(id, child);
    } else {
      LookOnce(id, child, kLooksAfterExit);
    }
    loop_->After(kDrainAfterExit, [child] {
      if (child->wire) child->wire->Close("still open after its process ended");
    });
  }

  // A process that ended at once may have connected and given its reason. Accepting and reading
  // that connection takes a turn of the loop each, so it looks again a few times.
  void LookOnce(const std::string& id, const std::shared_ptr<Child>& child, int looks) {
    if (child->met || looks == 0) return EndIfQuiet(id, child);
    loop_->After(kLookPause, [self = shared_from_this(), id, child, looks] {
      self->LookOnce(id, child, looks - 1);
    });
  }

  void EndIfQuiet(const std::string& id, const std::shared_ptr<Child>& child) {
    if (!child->exit || child->wire) return;
    const auto current = children_.find(id);
    if (current == children_.end() || current->second != child) return;
    children_.erase(current);
    if (events_.exited) events_.exited(id, *child->exit);
    NotifyIfAllEnded();
  }

  void NotifyIfAllEnded() {
    if (!on_all_ended_ || !children_.empty()) return;
    const auto done = std::move(on_all_ended_);
    on_all_ended_ = nullptr;
    done();
  }

  Loop* loop_;
  LocalHostOptions options_;
  fs::path socket_path_;
  Events events_;
  Unix::acceptor acceptor_;
  std::map<std::string, std::shared_ptr<Child>> children_;
  std::function<void()> on_all_ended_;
};

LocalHost::LocalHost(Loop* loop, LocalHostOptions options, Events events)
    : impl_(std::make_shared<Impl>(loop, std::move(options), std::move(events))) {
  impl_->Accept();
}

LocalHost::~LocalHost() { impl_->Shutdown(); }
void LocalHost::Start(const ProcessSpec& spec) { impl_->Start(spec); }
void LocalHost::Send(const std::string& id, const protocol::Message& message) {
  impl_->Send(id, message);
}
void LocalHost::Kill(const std::string& id) { impl_->Kill(id); }
void LocalHost::StopAll(std::chrono::milliseconds grace, std::function<void()> done) {
  impl_->StopAll(grace, std::move(done));
}

}  // namespace evald
