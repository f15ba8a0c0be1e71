#pragma once

#include <string>

namespace evald {

/// What /proc/cpuinfo calls the processor; empty where it does not.
std::string CpuName();

}  // namespace evald
