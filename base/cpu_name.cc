#include "base/cpu_name.h"

#include <fstream>

#include "base/text.h"

namespace evald {

std::string CpuName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return std::string(Trim(line.substr(line.find(':') + 1)));
  }
  return "";
}

}  // namespace evald
