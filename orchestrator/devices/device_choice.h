#pragma once

#include <functional>
#include <string>
#include <vector>

#include "orchestrator/devices/gpu_listing.h"

namespace evald {

/// A person's choice of devices.
struct DeviceRequest {
  std::vector<std::string> devices = {"auto"};
  int per_worker = 1;   ///< GPUs of each worker
  int cpu_workers = 1;  ///< workers if the processors are chosen for "auto"
};

/// Checks a person's choice of devices: "auto", "none" or "cuda:all" alone, else names of GPUs, of
/// groups of GPUs or of processors (base/device_name.h), each once. CPUs and GPUs cannot be mixed
/// on one host: their numbers differ in the last bits. Returns the fault, or "".
std::string WrongWithDevices(const std::vector<std::string>& asked);

/// "cpu:0", "cpu:1", …
std::vector<std::string> CpuDevices(int count);

/// Stands for all engines: a host lends its devices to whatever engine a run has.
inline constexpr const char* kAnyEngine = "";

/// The chosen devices, one for each worker. `list` is called only if GPUs may be among them.
///
///     auto         every visible GPU if there are any and `engine` computes on one, else the
///                  CPU, with `cpu_workers` workers
///     none         no device: only metric processes work on this host
///     cuda:all     every visible GPU
///     cuda:<uuid>  that GPU; several joined by '+': one worker for all of them
///     cpu:<n>      a worker on the CPU
///
/// If `per_worker` is above 1, that many GPUs become one device (GpuGroup): those that are named in
/// their order, else those of one NUMA node next to each other. GPUs that are left over are not
/// used, and the log names them.
///
/// Throws Error(kUsage) for GPUs if the engine uses none, and for several GPUs of a worker if the
/// engine computes on one. Throws Error(kInfrastructure) for GPUs that do not exist; the error
/// names the existing ones, or the missing part.
std::vector<std::string> ChooseDevices(const DeviceRequest& request, const std::string& engine,
                                       const std::function<GpuListing()>& list);

}  // namespace evald
