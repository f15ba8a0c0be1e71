#pragma once

#include <string>

namespace evald {

/// The processor's name in /proc/cpuinfo; empty if it has none.
std::string CpuName();

}  // namespace evald
