#include "orchestrator/fleet/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <deque>
#include <map>
#include <optional>

#include "base/file.h"
#include "evald/error.h"

namespace evald {
namespace asio = boost::asio;
namespace process = boost::process::v2;
namespace fs = std::filesystem;
using Unix = asio::local::stream_protocol;
using ErrorCode = boost::system::error_code;

namespace {

constexpr size_t kReadBytes = 64 * 1024;
// A child's socket may outlive it by what is still buffered, not by more.
constexpr std::chrono::milliseconds kDrainAfterExit{2000};
constexpr std::chrono::milliseconds kAcceptPause{100};

// Runs in the child between fork and exec: own process group, SIGKILL when the parent dies.
struct ChildSetup {
  pid_t parent = ::getpid();
  ErrorCode on_exec_setup(process::posix::default_launcher&, const process::filesystem::path&,
                          const char* const*&) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    return {};
  }
};

ProcessExit FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

}  // namespace

std::string ToString(const ProcessExit& exit) {
  return exit.signal != 0 ? fmt::format("killed by signal {}", exit.signal)
                          : fmt::format("exit status {}", exit.exit_code);
}

// One process's connection: reads lines, writes a queue in order.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(Unix::socket socket) : socket_(std::move(socket)) {}

  std::function<void(const protocol::Message&)> on_message;
  std::function<void(const std::string& why)> on_closed;

  void Read() {
    socket_.async_read_some(asio::buffer(chunk_), [self = shared_from_this()](
                                                      const ErrorCode& error, size_t bytes) {
      if (error) return self->Close(error == asio::error::eof ? "" : error.message());
      self->lines_.Feed({self->chunk_, bytes});
      if (self->Deliver()) self->Read();
    });
  }

  void Send(std::string line) {
    if (closed_) return;
    queue_.push_back(std::move(line));
    if (queue_.size() == 1) Write();
  }

  void Close(const std::string& why) {
    if (closed_) return;
    closed_ = true;
    ErrorCode ignored;
    socket_.close(ignored);
    const auto notify = std::move(on_closed);
    on_message = nullptr;
    if (notify) notify(why);
  }

 private:
  bool Deliver() {
    std::string line;
    while (!closed_) {
      std::optional<protocol::Message> message;
      try {
        if (!lines_.Next(&line)) break;
        message = protocol::Decode(line);
      } catch (const Error& e) {
        Close(std::string("it does not keep to the protocol: ") + e.what());
        break;
      }
      const auto handler = on_message;  // a copy: the handler may replace itself
      handler(*message);
    }
    return !closed_;
  }

  void Write() {
    asio::async_write(socket_, asio::buffer(queue_.front()),
                      [self = shared_from_this()](const ErrorCode& error, size_t) {
                        if (error) return self->Close(error.message());
                        self->queue_.pop_front();
                        if (!self->queue_.empty()) self->Write();
                      });
  }

  Unix::socket socket_;
  protocol::LineSplitter lines_;
  std::deque<std::string> queue_;
  char chunk_[kReadBytes];
  bool closed_ = false;
};

class Agent::Impl : public std::enable_shared_from_this<Agent::Impl> {
 public:
  Impl(Loop* loop, const fs::path& directory, Events events)
      : loop_(loop), socket_path_(directory / "agent.sock"), events_(std::move(events)),
        acceptor_(loop->context()) {
    try {
      acceptor_.open();
      acceptor_.bind(Unix::endpoint(socket_path_.string()));
      acceptor_.listen();
    } catch (const std::exception& e) {
      throw Error(ErrorKind::kInfrastructure, fmt::format("cannot listen at {}: {}",
                                                          socket_path_.string(), e.what()));
    }
  }

  void Accept() {
    acceptor_.async_accept([self = shared_from_this()](const ErrorCode& error, Unix::socket socket) {
      if (error == asio::error::operation_aborted || !self->acceptor_.is_open()) return;
      if (error) {  // no descriptor left, say: others may give some back
        spdlog::warn("accepting a connection failed: {}", error.message());
        return self->loop_->After(kAcceptPause, [self] { self->Accept(); });
      }
      self->Welcome(std::make_shared<Connection>(std::move(socket)));
      self->Accept();
    });
  }

  void Start(const ProcessSpec& spec) {
    UniqueFd log(::open(spec.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!log) ThrowErrno(spec.log, "open the log", errno);
    std::vector<std::string> arguments = spec.arguments;
    arguments.insert(arguments.end(), {"--socket", socket_path_.string(), "--id", spec.id});
    auto child = std::make_shared<Child>();
    try {
      child->process.emplace(loop_->context(), process::filesystem::path(spec.program.string()),
                             arguments, process::process_stdio{nullptr, log.get(), log.get()},
                             ChildSetup{});
    } catch (const std::exception& e) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("cannot start {}: {}", spec.program.string(), e.what()),
                  "build all programs (ninja) or check that the binaries lie side by side");
    }
    children_[spec.id] = child;
    child->process->async_wait([self = shared_from_this(), id = spec.id, child](const ErrorCode& error, int) {
      child->exit = error ? ProcessExit{0, SIGKILL} : FromWaitStatus(child->process->native_exit_code());
      self->EndIfQuiet(id, child);
      self->loop_->After(kDrainAfterExit, [child] {
        if (child->connection) child->connection->Close("still open after its process ended");
      });
    });
  }

  void Send(const std::string& id, const protocol::Message& message) {
    const auto child = children_.find(id);
    if (child != children_.end() && child->second->connection) {
      child->second->connection->Send(protocol::Encode(message));
    }
  }

  void Kill(const std::string& id) {
    const auto child = children_.find(id);
    if (child == children_.end() || child->second->exit) return;
    const pid_t pid = child->second->process->id();
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
  }

  bool Running(const std::string& id) const { return children_.count(id) > 0; }

  void StopAll(std::chrono::milliseconds grace, std::function<void()> done) {
    on_all_ended_ = std::move(done);
    for (const auto& [id, child] : children_) {
      if (child->connection) {
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
      if (child->connection) child->connection->Close("");
    }
    ::unlink(socket_path_.c_str());
  }

 private:
  struct Child {
    std::optional<process::process> process;
    std::shared_ptr<Connection> connection;
    std::optional<ProcessExit> exit;
  };

  // A connection is nobody's until its Hello names a running child.
  void Welcome(const std::shared_ptr<Connection>& connection) {
    std::weak_ptr<Connection> weak = connection;
    connection->on_message = [this, weak](const protocol::Message& message) {
      const auto strong = weak.lock();
      if (!strong) return;
      const auto* hello = std::get_if<protocol::Hello>(&message);
      if (hello == nullptr) return strong->Close("the first message must be hello");
      if (hello->version != protocol::kVersion) {
        return strong->Close(
            fmt::format("protocol version {}, expected {}", hello->version, protocol::kVersion));
      }
      const auto child = children_.find(hello->id);
      if (child == children_.end() || child->second->connection) {
        return strong->Close(fmt::format("hello from '{}', which is not expected", hello->id));
      }
      Attach(hello->id, child->second, strong);
      if (events_.message) events_.message(hello->id, message);
    };
    connection->on_closed = [](const std::string& why) {
      if (!why.empty()) spdlog::warn("a connection ended before its hello: {}", why);
    };
    connection->Read();
  }

  void Attach(const std::string& id, const std::shared_ptr<Child>& child,
              const std::shared_ptr<Connection>& connection) {
    child->connection = connection;
    connection->on_closed = [this, self = shared_from_this(), id, child](const std::string& why) {
      if (!why.empty()) spdlog::warn("connection of {} ended: {}", id, why);
      child->connection = nullptr;
      if (!child->exit) Kill(id);  // without a connection it cannot work for us
      EndIfQuiet(id, child);
    };
    connection->on_message = [this, id](const protocol::Message& message) {
      if (events_.message) events_.message(id, message);
    };
  }

  void EndIfQuiet(const std::string& id, const std::shared_ptr<Child>& child) {
    if (!child->exit || child->connection) return;
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
  fs::path socket_path_;
  Events events_;
  Unix::acceptor acceptor_;
  std::map<std::string, std::shared_ptr<Child>> children_;
  std::function<void()> on_all_ended_;
};

Agent::Agent(Loop* loop, const fs::path& directory, Events events)
    : impl_(std::make_shared<Impl>(loop, directory, std::move(events))) {
  impl_->Accept();
}

Agent::~Agent() { impl_->Shutdown(); }
void Agent::Start(const ProcessSpec& spec) { impl_->Start(spec); }
void Agent::Send(const std::string& id, const protocol::Message& message) { impl_->Send(id, message); }
void Agent::Kill(const std::string& id) { impl_->Kill(id); }
bool Agent::Running(const std::string& id) const { return impl_->Running(id); }
void Agent::StopAll(std::chrono::milliseconds grace, std::function<void()> done) {
  impl_->StopAll(grace, std::move(done));
}

}  // namespace evald
