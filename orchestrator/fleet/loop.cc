#include "orchestrator/fleet/loop.h"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace evald {
namespace asio = boost::asio;
namespace {

constexpr int64_t kLongMicros = 1'000'000;      // a turn that is worth a warning
constexpr int64_t kWorthSayingMicros = 20'000;  // logged at level debug

int64_t ProcessorNanos() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

struct Loop::State {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
  std::optional<asio::signal_set> signals;
  std::function<void(int)> on_signal;
  LoopTurnCounter turns;
  bool in_turn = false;
  int64_t longest_part_us = 0;  // of the turn under way
  std::string longest_part;

  static thread_local State* running;

  void WaitForSignal() {
    signals->async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      const LoopTurn turn("a signal");
      on_signal(signal);
      WaitForSignal();
    });
  }
};

thread_local Loop::State* Loop::State::running = nullptr;

Loop::Loop() : state_(std::make_unique<State>()) {}
Loop::~Loop() = default;

void Loop::Post(std::function<void()> work, std::source_location from) {
  asio::post(state_->context, [work = std::move(work), from] {
    const LoopTurn turn("work posted by", from.function_name());
    work();
  });
}

void Loop::After(std::chrono::milliseconds delay, std::function<void()> work,
                 std::source_location from) {
  auto timer = std::make_shared<asio::steady_timer>(state_->context, delay);
  timer->async_wait([timer, work = std::move(work), from](const boost::system::error_code& error) {
    if (error) return;
    const LoopTurn turn("a timer of", from.function_name());
    work();
  });
}

void Loop::OnSignals(std::function<void(int)> handler) {
  state_->on_signal = std::move(handler);
  state_->signals.emplace(state_->context, SIGINT, SIGTERM);
  state_->WaitForSignal();
}

void Loop::Run() {
  struct Running {
    explicit Running(State* state) { State::running = state; }
    ~Running() { State::running = nullptr; }
  };
  const Running running(state_.get());
  state_->context.run();
}

void Loop::Stop() { state_->context.stop(); }
LoopTurns Loop::turns() const { return state_->turns.Look(MonotonicMicros()); }
asio::io_context& Loop::context() { return state_->context; }

LoopTurn::LoopTurn(const char* what, std::string_view of)
    : what_(what), of_(of), loop_(Loop::State::running) {
  if (loop_ == nullptr) return;
  begin_us_ = MonotonicMicros();
  outermost_ = !std::exchange(loop_->in_turn, true);
  if (!outermost_) return;
  begin_processor_ns_ = ProcessorNanos();
  loop_->longest_part_us = 0;
  loop_->longest_part.clear();
}

LoopTurn::~LoopTurn() {
  if (loop_ == nullptr) return;
  const int64_t now = MonotonicMicros(), took_us = now - begin_us_;
  if (!outermost_) {
    if (took_us < kWorthSayingMicros / 2 || took_us <= loop_->longest_part_us) return;
    loop_->longest_part_us = took_us;
    loop_->longest_part = fmt::format("{} {}", what_, of_);
    return;
  }
  loop_->in_turn = false;
  loop_->turns.Add(now, static_cast<double>(took_us) / 1e6,
                   static_cast<double>(ProcessorNanos() - begin_processor_ns_) / 1e9);
  if (took_us < kWorthSayingMicros) return;
  const std::string part = loop_->longest_part.empty() ? "" : ", most of it " + loop_->longest_part;
  const double seconds = static_cast<double>(took_us) / 1e6;
  if (took_us < kLongMicros) {
    log::Debug("a turn of the loop took {:.3f} s: {} {}{}", seconds, what_, of_, part);
  } else {
    log::Warn("the loop did nothing else for {:.1f} s, heartbeats were not seen: {} {}{}", seconds,
              what_, of_, part);
  }
}

}  // namespace evald
