#pragma once

#include <functional>
#include <string>
#include <vector>

#include "orchestrator/devices/gpu_listing.h"

namespace evald {

/// Checks what somebody asked for: "auto" or "cuda:all" alone, else names "cuda:<uuid>", or names
/// "cpu:<n>", each once. CPU and GPU numbers differ in their last bits, so one host does not lend
/// both. Gives what is wrong with it; "" for nothing.
std::string WrongWithDevices(const std::vector<std::string>& asked);

/// "cpu:0", "cpu:1", …
std::vector<std::string> CpuDevices(int count);

/// The devices that are asked for, a worker each. `list` is called only where it matters.
///
///     auto         every visible GPU where `engine` computes on one and there are any, else the CPU,
///                  with `cpu_workers` workers
///     cuda:all     every visible GPU
///     cuda:<uuid>  that GPU
///     cpu:<n>      a worker on the CPU
///
/// Throws Error(kUsage) for GPUs of an engine that uses none, Error(kInfrastructure) for a GPU that
/// is not there, naming what is or saying what is missing.
std::vector<std::string> ChooseDevices(const std::vector<std::string>& asked,
                                       const std::string& engine, int cpu_workers,
                                       const std::function<GpuListing()>& list);

}  // namespace evald
