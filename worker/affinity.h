#pragma once

#include <string>

namespace evald {

/// Binds this process, and threads that it starts later, to the CPUs of a list such as "0-3,8".
/// Throws Error(kUsage) for an invalid list, and Error(kInfrastructure) if the kernel refuses.
void SetCpuAffinity(const std::string& cpus);

}  // namespace evald
