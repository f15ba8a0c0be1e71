#include "base/last_lines.h"

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "base/text.h"

namespace evald {

std::vector<std::string> LastLines(const std::filesystem::path& file, size_t count) {
  constexpr uint64_t kTailBytes = 4096;
  std::ifstream log(file, std::ios::binary | std::ios::ate);
  const auto bytes = static_cast<uint64_t>(std::max<std::streamoff>(0, log.tellg()));
  log.seekg(static_cast<std::streamoff>(bytes - std::min(bytes, kTailBytes)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) {
    if (!Trim(line).empty()) lines.push_back(line);
  }
  if (lines.size() > count)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

}  // namespace evald
