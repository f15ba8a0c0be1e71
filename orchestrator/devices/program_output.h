#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace evald {

/// Returns the text that a program prints on standard output until it ends, at most 1 MiB. The
/// program inherits standard error. Its standard input holds `input` if that is given, else it
/// inherits standard input too. Throws Error(kInfrastructure) if the program cannot be started or
/// does not end in time. In the latter case the program is killed; if the kernel does not let it
/// die, it is left behind.
std::string OutputOf(const std::filesystem::path& program, std::vector<std::string> arguments,
                     std::chrono::milliseconds timeout,
                     const std::optional<std::string>& input = std::nullopt);

}  // namespace evald
