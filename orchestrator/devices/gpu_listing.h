#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald {

/// A GPU as its worker program sees it.
struct Gpu {
  std::string id;  ///< "cuda:GPU-8f6d…"
  std::string name;
  uint64_t memory_bytes = 0;
  int numa_node = -1;   ///< -1: unknown
  std::string compute;  ///< compute capability, "9.0"
};

/// The GPUs of this host, or why there are none to compute on.
struct GpuListing {
  std::vector<Gpu> gpus;
  std::string driver;   ///< versions, "" where there is none
  std::string missing;  ///< when there are no GPUs: what is missing, exactly
  bool broken = false;  ///< there should be some: the worker program is there and cannot tell
};

/// Asks evald-worker-cuda (`--list-devices`), within `timeout`. Does not throw.
GpuListing ListGpus(const std::filesystem::path& binaries,
                    std::chrono::milliseconds timeout = std::chrono::seconds(30));

/// What `evald-worker-cuda --list-devices` printed. Throws Error(kInput) for what is not that.
GpuListing ParseGpuListing(const std::string& text, const std::string& where);

}  // namespace evald
