#include "orchestrator/devices/gpu_listing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/device_name.h"
#include "base/jsonl.h"
#include "base/program.h"
#include "evald/error.h"
#include "orchestrator/devices/programs.h"

// The reason for which this build has no evald-worker-cuda; "" if it has one (cmake/cuda.cmake).
#ifndef EVALD_CUDA_MISSING
#define EVALD_CUDA_MISSING ""
#endif

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kDriverFile = "/proc/driver/nvidia/version";

std::string WhyNoWorker(const fs::path& program) {
  const std::string built = EVALD_CUDA_MISSING;
  return built.empty() ? fmt::format("{} is not there", program.string())
                       : fmt::format("this build has no {}: {}", kGpuWorker, built);
}

// The worker found no GPU.
std::string WhyNoGpu() {
  if (::access(kDriverFile, F_OK) != 0) {
    return fmt::format("no NVIDIA driver is loaded ({} is not there)", kDriverFile);
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) {
    return fmt::format("the NVIDIA driver shows no GPU (CUDA_VISIBLE_DEVICES is '{}')", visible);
  }
  return "the NVIDIA driver shows no GPU; 'nvidia-smi -L' may say why";
}

}  // namespace

GpuListing ParseGpuListing(const std::string& text, const std::string& where) {
  const Json json = ParseJson(text, where);
  GpuListing listing;
  listing.driver = Field<std::string>(json, "driver", where);
  const Json devices = Field<Json>(json, "devices", where);
  if (!devices.is_array())
    throw Error(ErrorKind::kInput, where + ": key 'devices': expected a list");
  for (const Json& one : devices) {
    Gpu gpu;
    gpu.id = Field<std::string>(one, "id", where);
    gpu.name = Field<std::string>(one, "name", where);
    gpu.memory_bytes = Field<uint64_t>(one, "memory_bytes", where);
    gpu.numa_node = FieldOr<int>(one, "numa_node", -1, where);
    gpu.compute = FieldOr<std::string>(one, "compute", "", where);
    if (!IsGpu(gpu.id)) {
      throw Error(ErrorKind::kInput, fmt::format("{}: '{}' is not a GPU's name", where, gpu.id));
    }
    listing.gpus.push_back(std::move(gpu));
  }
  return listing;
}

GpuListing ListGpus(const fs::path& binaries, std::chrono::milliseconds timeout) {
  const fs::path program = ProgramPath(binaries, kGpuWorker);
  GpuListing listing;
  if (::access(program.c_str(), X_OK) != 0) {
    listing.missing = WhyNoWorker(program);
    return listing;
  }
  try {
    listing = ParseGpuListing(OutputOf(program, {"--list-devices"}, timeout),
                              program.string() + " --list-devices");
    if (listing.gpus.empty()) listing.missing = WhyNoGpu();
  } catch (const Error& e) {
    listing = {};
    listing.missing = e.what();
    listing.broken = true;
  }
  return listing;
}

}  // namespace evald
