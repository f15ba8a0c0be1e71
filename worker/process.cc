#include "worker/process.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>

#include "base/device_name.h"
#include "base/log.h"
#include "evald/error.h"
#include "worker/device_lock.h"
#include "worker/trial_loop.h"

namespace evald {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kHeartbeat{500};
constexpr std::chrono::milliseconds kReceiveWait{100};
constexpr std::chrono::seconds kStopGrace{2};
// Time for the previous worker to end and release the device.
constexpr std::chrono::milliseconds kDevicePatience{3'000};
// A worker that waits for its device reports this so often: its agent may have restarted.
constexpr std::chrono::seconds kWaitingEvery{10};

protocol::Hello MakeHello(const std::string& id, const Json& engine) {
  protocol::Hello hello;
  hello.role = "worker";
  hello.id = id;
  hello.pid = ::getpid();
  hello.engine = engine;
  return hello;
}

// The connection to the agent, for the trial loop. A lost agent is not a trial's failure: Send does
// not throw.
class Line {
 public:
  explicit Line(protocol::Channel* channel) : channel_(channel) {}

  void Send(const protocol::Message& message) {
    if (lost_) return;
    try {
      channel_->Send(message);
    } catch (const Error& e) {
      if (!lost_.exchange(true)) log::Error("{}", e.what());
    }
  }
  bool lost() const { return lost_ || channel_->closed(); }

  // Returns nothing if no message came. A message that makes no sense is reported to the agent.
  std::optional<protocol::Message> Receive() {
    try {
      return channel_->Receive(kReceiveWait);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInput) {
        lost_ = true;
      } else {
        Send(protocol::TrialFailed{-1, 0, false, std::string("from the agent: ") + e.what()});
      }
      return std::nullopt;
    }
  }

 private:
  protocol::Channel* channel_;
  std::atomic<bool> lost_{false};
};

// The engine's thread, and whether it has ended.
class EngineThread {
 public:
  explicit EngineThread(TrialLoop* loop)
      : thread_([this, loop] {
          loop->Run();
          const std::lock_guard lock(mutex_);
          ended_ = true;
          changed_.notify_all();
        }) {}

  bool WaitEnded(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return ended_; });
  }
  void Join() { thread_.join(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;  // last: it uses the others
};

// Takes the device, however long another process holds it, and reports the wait to the agent.
// Returns nothing once the device is taken, or the process's exit status if the agent wants no
// worker any more.
std::optional<int> TakeDevice(DeviceLock* lock, const std::string& id, protocol::Channel* channel) {
  if (lock->Take(kDevicePatience)) return std::nullopt;
  Line line(channel);
  protocol::Hello hello = MakeHello(id, Json());
  Clock::time_point next = Clock::now();
  do {
    const std::string held = lock->HeldBy();
    if (held != hello.waits) log::Warn("{}; this worker waits", held);
    if (held != hello.waits || Clock::now() >= next) {
      hello.waits = held;
      line.Send(hello);
      next = Clock::now() + kWaitingEvery;
    }
    const std::optional<protocol::Message> message = line.Receive();
    if (line.lost()) return 3;
    if (message && std::holds_alternative<protocol::Stop>(*message)) return 0;
    if (message && std::holds_alternative<protocol::Drain>(*message)) return 0;
  } while (!lock->Take(std::chrono::milliseconds(0)));
  return std::nullopt;
}

// Tells the agent that the engine could not be made. Refused settings would be refused again
// anywhere; after any other error a later attempt may succeed, once the GPU is healthy or on
// another one. Returns the process's exit status.
int TellUnmade(const WorkerOptions& options, const Error& error, protocol::Channel* channel) {
  const bool again = ExitStatusFor(error.kind()) != ExitStatus::kUsage;
  const bool device = error.kind() == ErrorKind::kInfrastructure && IsGpu(options.engine.device);
  channel->Send(MakeHello(options.id, Json()));
  channel->Send(protocol::TrialFailed{-1, 0, again, error.what(), device});
  log::Error("{}", error.what());
  return static_cast<int>(ExitStatusFor(error.kind()));
}

}  // namespace

int RunWorkerOn(protocol::Channel* channel, Engine* engine) {
  Line line(channel);
  TrialLoop loop(engine, [&line](const protocol::Message& message) { line.Send(message); });
  EngineThread thread(&loop);
  Clock::time_point next_heartbeat = Clock::now();
  bool stopping = false;
  while (!stopping && !thread.WaitEnded(std::chrono::milliseconds(0))) {
    if (Clock::now() >= next_heartbeat) {
      for (const protocol::Progress& progress : loop.Snapshot()) line.Send(progress);
      next_heartbeat = Clock::now() + kHeartbeat;
    }
    std::optional<protocol::Message> message = line.Receive();
    if (line.lost()) message = protocol::Stop{};
    if (!message) continue;
    stopping = std::holds_alternative<protocol::Stop>(*message);
    loop.Post(std::move(*message));
  }
  const int status = line.lost() ? 3 : 0;
  if (status == 3) log::Error("the agent is gone; this worker ends");
  if (stopping && !thread.WaitEnded(kStopGrace)) ::_exit(status);
  thread.Join();
  if (!loop.broken()) return status;
  log::Error("{}; this worker ends", *loop.broken());
  return 3;
}

int RunWorker(const WorkerOptions& options, EngineMaker make_engine) {
  protocol::Channel channel = protocol::Channel::Connect(options.socket);
  std::optional<DeviceLock> lock;
  std::unique_ptr<Engine> engine;
  const bool gpu = IsGpu(options.engine.device);
  try {
    if (options.unreadable) throw *options.unreadable;
    if (gpu) {
      lock.emplace(DeviceLock::DefaultFolder(), options.engine.device);
      if (const auto ended = TakeDevice(&*lock, options.id, &channel)) return *ended;
    }
    engine = make_engine(options.engine);
  } catch (const Error& e) {
    return TellUnmade(options, e, &channel);
  } catch (const std::exception& e) {
    return TellUnmade(options, Error(ErrorKind::kInternal, e.what()), &channel);
  }
  channel.Send(MakeHello(options.id, ToJson(engine->Info())));
  const int status = RunWorkerOn(&channel, engine.get());
  // The resources of a broken device cannot be released; trying might hang or crash.
  if (engine->Broken()) ::_exit(status);
  return status;
}

}  // namespace evald
