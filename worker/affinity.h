#pragma once

#include <string>

namespace evald {

/// Binds this process, and the threads it will start, to the CPUs of a list such as "0-3,8". Throws
/// Error(kUsage) for what is not a list, Error(kInfrastructure) when the kernel refuses.
void SetCpuAffinity(const std::string& cpus);

}  // namespace evald
