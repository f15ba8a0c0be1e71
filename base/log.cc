#include "base/log.h"

#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace evald {
namespace {

spdlog::level::level_enum Of(log::Level level) {
  switch (level) {
    case log::Level::kDebug:
      return spdlog::level::debug;
    case log::Level::kInfo:
      return spdlog::level::info;
    case log::Level::kWarn:
      return spdlog::level::warn;
    case log::Level::kError:
      return spdlog::level::err;
    case log::Level::kCritical:
      return spdlog::level::critical;
  }
  return spdlog::level::critical;
}

// Standard error. If nobody reads from its pipe, or its terminal is stopped, lines are lost, and
// the program goes on.
class StandardError : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (lost_ > 0 &&
        Put(fmt::format("\n... {} lines of this log are lost: nobody read them\n", lost_)))
      lost_ = 0;
    if (lost_ > 0 || !Put({line.data(), line.size()})) ++lost_;
  }
  void flush_() override {}

 private:
  static constexpr int kPatienceMs = 200;

  // Waits for a reader who may be slow, but not again and again for one who is away.
  bool Writable() const {
    pollfd entry{STDERR_FILENO, POLLOUT, 0};
    int found = -1;
    do {
      found = ::poll(&entry, 1, lost_ > 0 ? 0 : kPatienceMs);
    } while (found < 0 && errno == EINTR);
    return found > 0;  // also if standard error is closed: then write() says so
  }

  // A pipe that is writable takes PIPE_BUF bytes without a wait (pipe(7)).
  bool Put(std::string_view text) const {
    while (!text.empty()) {
      if (!Writable()) return false;
      const ssize_t written =
          ::write(STDERR_FILENO, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno == EAGAIN) return false;  // another program made it non-blocking
      if (written <= 0) return true;  // standard error is closed: there is no reader to tell
      text.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  int64_t lost_ = 0;
};

}  // namespace

void SetUpLog(const std::string& program, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>(program, std::make_shared<StandardError>());
  logger->set_pattern("%H:%M:%S.%e %n %l: %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

std::string log::LevelName() {
  const auto name = spdlog::level::to_string_view(spdlog::default_logger_raw()->level());
  return {name.data(), name.size()};
}

void log::Write(Level level, fmt::string_view format, fmt::format_args values) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  if (logger->should_log(Of(level)))
    logger->log(Of(level), PrintableLine(fmt::vformat(format, values)));
}

}  // namespace evald
