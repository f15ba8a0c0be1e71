#pragma once

#include <fmt/core.h>

#include <string>

namespace evald {

/// Sends this process's log to standard error, one line an event, marked with `program`. `level` is
/// trace, debug, info, warn, error or off. A line that nobody reads within 0.2 s is lost, and so
/// are those after it until somebody reads again; then the log says how many. So no thread hangs
/// because of its log, unless another program fills the same pipe at the same moment.
void SetUpLog(const std::string& program, const std::string& level);

/// Lines for the log, formatted as by fmt::format if their level is logged. Any thread. Only Write
/// uses the logging library: its headers would cost every file that logs seconds of compilation.
namespace log {

/// The level at which this process logs, in SetUpLog's words.
std::string LevelName();

enum class Level { kDebug, kInfo, kWarn, kError, kCritical };

void Write(Level level, fmt::string_view format, fmt::format_args values);

template <typename... T>
void Debug(fmt::format_string<T...> format, T&&... values) {
  Write(Level::kDebug, format, fmt::make_format_args(values...));
}

template <typename... T>
void Info(fmt::format_string<T...> format, T&&... values) {
  Write(Level::kInfo, format, fmt::make_format_args(values...));
}

template <typename... T>
void Warn(fmt::format_string<T...> format, T&&... values) {
  Write(Level::kWarn, format, fmt::make_format_args(values...));
}

template <typename... T>
void Error(fmt::format_string<T...> format, T&&... values) {
  Write(Level::kError, format, fmt::make_format_args(values...));
}

template <typename... T>
void Critical(fmt::format_string<T...> format, T&&... values) {
  Write(Level::kCritical, format, fmt::make_format_args(values...));
}

}  // namespace log
}  // namespace evald
