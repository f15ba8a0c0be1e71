#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace evald {

/// What a program prints on standard output until it ends, at most 1 MiB of it; its standard error
/// is ours. Throws Error(kInfrastructure) when it cannot be started, or has not ended in time: then
/// it is killed, and left where the kernel does not let it die. The program finds `input` on its
/// standard input, where it is given; else its standard input is ours.
std::string OutputOf(const std::filesystem::path& program, std::vector<std::string> arguments,
                     std::chrono::milliseconds timeout,
                     const std::optional<std::string>& input = std::nullopt);

}  // namespace evald
