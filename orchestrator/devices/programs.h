#pragma once

#include <filesystem>
#include <string>

namespace evald {

inline constexpr const char* kCpuWorker = "evald-worker";
inline constexpr const char* kGpuWorker = "evald-worker-cuda";

/// Whether a device's name stands for a GPU: "cuda:GPU-8f6d…".
bool IsGpu(const std::string& device);

/// The program that serves `engine` on `device`. Engines that compute elsewhere do not care for the
/// device.
std::string WorkerProgram(const std::string& engine, const std::string& device);

/// Whether an agent starts a program of this name.
bool IsStartable(const std::string& program);

/// Where it lies: in the folder `binaries`, but for evald-worker-cuda where $EVALD_WORKER_CUDA
/// names another.
std::filesystem::path ProgramPath(const std::filesystem::path& binaries,
                                  const std::string& program);

}  // namespace evald
