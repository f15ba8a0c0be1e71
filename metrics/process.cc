#include "metrics/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/job.h"
#include "metrics/math_comparer.h"
#include "metrics/task_codes.h"
#include "protocol/seen_attempts.h"

namespace evald {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kHeartbeat{500};
constexpr std::chrono::milliseconds kReceiveWait{100};
constexpr std::chrono::seconds kStopGrace{2};
// A process of task code ends after so long without a job: it may hold memory, and its threads may
// compute on.
constexpr std::chrono::seconds kIdle{3};

// The sandbox of this process. It is made again after it broke.
class Sandbox {
 public:
  explicit Sandbox(SandboxOptions options) : options_(std::move(options)) { TryMake(); }

  // Throws the error that kept the sandbox from being made.
  CodeRunner* Get() {
    if (!runner_) TryMake();
    if (!runner_) throw Error(*failure_);
    return runner_.get();
  }
  void Drop() { runner_.reset(); }

  Json Isolation() const {
    if (runner_) return runner_->Isolation();
    return {{"isolation", nullptr}, {"unavailable", failure_->what()}};
  }

 private:
  void TryMake() {
    try {
      runner_ = MakeCodeRunner(options_);
    } catch (const Error& e) {
      failure_ = e;
    }
  }

  SandboxOptions options_;
  std::unique_ptr<CodeRunner> runner_;
  std::optional<Error> failure_;
};

// The connection, its jobs, and the state of the current job for the heartbeat.
class Session {
 public:
  // Says hello, which must be the first message, then begins to receive.
  Session(protocol::Channel* channel, const protocol::Hello& hello) : channel_(channel) {
    Send(hello);
    receiver_ = std::thread([this] { Receive(); });
  }
  ~Session() {
    ending_ = true;
    receiver_.join();
  }

  void Send(const protocol::Message& message) {
    if (lost_) return;
    try {
      channel_->Send(message);
    } catch (const Error& e) {
      if (!lost_.exchange(true)) log::Error("{}", e.what());
    }
  }

  // Waits for the next job. Nothing if there will be no more. Calls `idle` if there is none for a
  // while.
  std::optional<protocol::Job> Next(const std::function<void()>& idle) {
    std::unique_lock lock(mutex_);
    job_ = -1;
    done = 0;
    if (jobs_.empty() && !draining_ && !stop) {
      lock.unlock();
      Send(protocol::Want{1});
      lock.lock();
    }
    const auto is_next = [this] { return stop || draining_ || !jobs_.empty(); };
    if (!changed_.wait_for(lock, kIdle, is_next)) {
      lock.unlock();
      idle();
      lock.lock();
    }
    changed_.wait(lock, is_next);
    if (stop || jobs_.empty()) return std::nullopt;
    protocol::Job job = std::move(jobs_.front());
    jobs_.pop_front();
    job_ = job.job;
    return job;
  }

  bool lost() const { return lost_; }

  std::atomic<bool> stop{false};
  std::atomic<int64_t> done{0};  ///< documents of the current job

 private:
  void Receive() {
    Clock::time_point next_heartbeat = Clock::now();
    while (!ending_) {
      if (Clock::now() >= next_heartbeat) {
        protocol::Progress progress;
        progress.trial = job_;
        progress.requests_done = done;
        Send(progress);
        next_heartbeat = Clock::now() + kHeartbeat;
      }
      if (stop && Clock::now() > stop_by_) ::_exit(lost_ ? 3 : 0);  // a program does not end
      TakeOne();
      if ((lost_ || channel_->closed()) && !stop) {
        lost_ = true;
        Stop();
      }
    }
  }

  void TakeOne() {
    std::optional<protocol::Message> message;
    if (stop) {
      std::this_thread::sleep_for(kReceiveWait);
      return;
    }
    try {
      message = channel_->Receive(kReceiveWait);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInput) lost_ = true;
      log::Error("from the agent: {}", e.what());
    }
    if (!message) return;
    if (auto* job = std::get_if<protocol::Job>(&*message)) {
      const std::lock_guard lock(mutex_);
      if (taken_.Add(job->job, job->attempt)) jobs_.push_back(std::move(*job));
    } else if (std::holds_alternative<protocol::Drain>(*message)) {
      const std::lock_guard lock(mutex_);
      draining_ = true;
    } else if (std::holds_alternative<protocol::Stop>(*message)) {
      Stop();
    }
    changed_.notify_all();
  }

  void Stop() {
    const std::lock_guard lock(mutex_);
    stop_by_ = Clock::now() + kStopGrace;
    stop = true;
    changed_.notify_all();
  }

  protocol::Channel* channel_;
  std::atomic<bool> ending_{false};
  std::atomic<bool> lost_{false};
  std::atomic<int64_t> job_{-1};
  Clock::time_point stop_by_;  // only the receiving thread reads and writes it
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<protocol::Job> jobs_;
  protocol::SeenAttempts taken_;
  bool draining_ = false;
  std::thread receiver_;
};

void Serve(const protocol::Job& job, const MetricProcessOptions& options, Sandbox* sandbox,
           TaskCodes* codes, MathComparer* math, Session* session) {
  const int64_t begin = MonotonicMicros();
  FailPoint("metric.job_taken");
  try {
    protocol::JobDone result;
    if (!RunJob(
            job, [sandbox] { return sandbox->Get(); },
            [codes](const PreparedTask& prepared) { return codes->For(prepared); }, session->stop,
            &session->done, &result, kJobTime, math, options.judge_cache)) {
      return;
    }
    session->Send(
        protocol::Span{"score",
                       begin,
                       MonotonicMicros(),
                       {{"task", job.task},
                        {"job", job.job},
                        {"documents", (result.end > 0 ? result.end : job.end) - job.first},
                        {"cpu_seconds", result.cpu_seconds}}});
    FailPoint("metric.before_job_done");
    session->Send(result);
    FailPoint("metric.after_job_done");
  } catch (const Error& e) {
    codes->Drop();  // its process may have ended
    math->Drop();
    // These errors refuse the task
    const bool retry = e.kind() != ErrorKind::kInput && e.kind() != ErrorKind::kUsage;
    if (retry) sandbox->Drop();
    session->Send(protocol::JobFailed{job.job, retry, e.what(), job.attempt});
  } catch (const std::bad_alloc&) {
    const Error error(
        ErrorKind::kInput,
        fmt::format(
            "task '{}', documents {} to {}: scoring takes more memory than a metric process "
            "may have ({})",
            job.task, job.first, job.end - 1, HumanBytes(kMetricMemoryMax)),
        "ask for fewer repeats or shorter answers, or end the pipelines of filter_list with "
        "take_first");
    session->Send(protocol::JobFailed{job.job, false, error.what(), job.attempt});
  } catch (const std::exception& e) {
    session->Send(protocol::JobFailed{
        job.job, true, fmt::format("task '{}': {}", job.task, e.what()), job.attempt});
  }
}

}  // namespace

int RunMetricProcessOn(protocol::Channel* channel, const MetricProcessOptions& options) {
  Sandbox sandbox(options.sandbox);
  TaskCodes codes(options.task_code);
  MathComparer math(options.task_code);
  const auto idle = [&] {
    codes.Drop();
    math.Drop();
  };
  protocol::Hello hello;
  hello.role = "metric";
  hello.id = options.id;
  hello.pid = ::getpid();
  hello.engine = sandbox.Isolation();
  Session session(channel, hello);
  while (const std::optional<protocol::Job> job = session.Next(idle))
    Serve(*job, options, &sandbox, &codes, &math, &session);
  if (!session.lost()) return 0;
  log::Error("the agent is gone; this metric process ends");
  return static_cast<int>(ExitStatus::kIncomplete);
}

int RunMetricProcess(const MetricProcessOptions& options) {
  protocol::Channel channel = protocol::Channel::Connect(options.socket);
  return RunMetricProcessOn(&channel, options);
}

}  // namespace evald
