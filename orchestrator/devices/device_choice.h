#pragma once

#include <functional>
#include <string>
#include <vector>

#include "orchestrator/devices/gpu_listing.h"

namespace evald {

/// Checks a person's choice of devices: "auto" or "cuda:all" alone, else names "cuda:<uuid>" or
/// names "cpu:<n>", each once. CPUs and GPUs cannot be mixed on one host: their numbers differ in
/// the last bits. Returns the fault, or "".
std::string WrongWithDevices(const std::vector<std::string>& asked);

/// "cpu:0", "cpu:1", …
std::vector<std::string> CpuDevices(int count);

/// Stands for all engines: a host lends its devices to whatever engine a run has.
inline constexpr const char* kAnyEngine = "";

/// The chosen devices, one for each worker. `list` is called only if GPUs may be among them.
///
///     auto         every visible GPU if there are any and `engine` computes on one, else the
///                  CPU, with `cpu_workers` workers
///     cuda:all     every visible GPU
///     cuda:<uuid>  that GPU
///     cpu:<n>      a worker on the CPU
///
/// Throws Error(kUsage) for GPUs if the engine uses none. Throws Error(kInfrastructure) for a GPU
/// that does not exist; the error names the existing ones, or the missing part.
std::vector<std::string> ChooseDevices(const std::vector<std::string>& asked,
                                       const std::string& engine, int cpu_workers,
                                       const std::function<GpuListing()>& list);

}  // namespace evald
