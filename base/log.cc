#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
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

}  // namespace

void SetUpLog(const std::string& program, const std::string& level) {
  auto logger =
      std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
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
