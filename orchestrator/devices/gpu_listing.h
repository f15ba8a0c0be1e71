#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald {

/// A GPU as reported by its worker program.
struct Gpu {
  std::string id;  ///< "cuda:GPU-8f6d…"
  std::string name;
  uint64_t memory_bytes = 0;
  int numa_node = -1;   ///< -1: unknown
  std::string compute;  ///< compute capability, "9.0"
};

/// The GPUs of this host, or the reason for which there is none to compute on.
struct GpuListing {
  std::vector<Gpu> gpus;
  std::string driver;   ///< versions; "" if there is no driver
  std::string missing;  ///< if there are no GPUs: the part that is missing
  bool broken = false;  ///< GPUs are expected: the worker program exists and cannot list them
};

/// Asks evald-worker-cuda (`--list-devices`) and waits no longer than `timeout`. Does not throw.
GpuListing ListGpus(const std::filesystem::path& binaries,
                    std::chrono::milliseconds timeout = std::chrono::seconds(30));

/// Parses the output of `evald-worker-cuda --list-devices`. Throws Error(kInput) for any other
/// text.
GpuListing ParseGpuListing(const std::string& text, const std::string& where);

}  // namespace evald
