#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

namespace evald {

void SetUpLog(const std::string& program, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>(program,
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%H:%M:%S.%e %n %l: %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace evald
