#pragma once

#include <string>
#include <vector>

namespace evald {

/// Names of devices, each of which has one worker:
///
///     cpu:<n>                        the processors
///     cuda:<uuid>                    a GPU, by the UUID that the driver gives it
///     cuda:<uuid>+<uuid>…            several GPUs, for a server that splits a model over them
inline constexpr const char* kGpuPrefix = "cuda:";

/// Whether the name names one or several GPUs. The name may be any text.
bool IsGpu(const std::string& device);

/// The UUIDs of the GPUs that the name names, in its order; none for a processor.
std::vector<std::string> GpuUuids(const std::string& device);

/// The devices of which the name is made: each GPU by its own name, or the name itself.
std::vector<std::string> PartsOf(const std::string& device);

/// The name of several GPUs that have one worker together. Each of `gpus` names one GPU.
std::string GpuGroup(const std::vector<std::string>& gpus);

}  // namespace evald
