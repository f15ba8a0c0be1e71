#include "orchestrator/fleet/loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <optional>

namespace evald {
namespace asio = boost::asio;

struct Loop::State {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
  std::optional<asio::signal_set> signals;
  std::function<void(int)> on_signal;

  void WaitForSignal() {
    signals->async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      on_signal(signal);
      WaitForSignal();
    });
  }
};

Loop::Loop() : state_(std::make_unique<State>()) {}
Loop::~Loop() = default;

void Loop::Post(std::function<void()> work) { asio::post(state_->context, std::move(work)); }

void Loop::After(std::chrono::milliseconds delay, std::function<void()> work) {
  auto timer = std::make_shared<asio::steady_timer>(state_->context, delay);
  timer->async_wait([timer, work = std::move(work)](const boost::system::error_code& error) {
    if (!error) work();
  });
}

void Loop::OnSignals(std::function<void(int)> handler) {
  state_->on_signal = std::move(handler);
  state_->signals.emplace(state_->context, SIGINT, SIGTERM);
  state_->WaitForSignal();
}

void Loop::Run() { state_->context.run(); }
void Loop::Stop() { state_->context.stop(); }
asio::io_context& Loop::context() { return state_->context; }

}  // namespace evald
