#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace evald {

/// Sends this process's log to standard error, one line an event, marked with `program`. `level` is
/// trace, debug, info, warn, error or off.
void SetUpLog(const std::string& program, const std::string& level);

}  // namespace evald
