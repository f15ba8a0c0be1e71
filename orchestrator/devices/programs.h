#pragma once

#include <filesystem>
#include <string>

namespace evald {

inline constexpr const char* kCpuWorker = "evald-worker";
inline constexpr const char* kGpuWorker = "evald-worker-cuda";

/// The program that serves `engine` on `device`. The device does not matter for an engine that
/// computes elsewhere.
std::string WorkerProgram(const std::string& engine, const std::string& device);

/// Whether an agent may start a program of this name.
bool IsStartable(const std::string& program);

/// The program's path: in the folder `binaries`, except evald-worker-cuda if $EVALD_WORKER_CUDA
/// names another file.
std::filesystem::path ProgramPath(const std::filesystem::path& binaries,
                                  const std::string& program);

}  // namespace evald
