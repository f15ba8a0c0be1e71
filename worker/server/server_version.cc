#include "worker/server/server_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <cstdlib>

#include "evald/error.h"

namespace evald::server {

bool OlderThan(const std::string& version, const std::vector<int>& oldest) {
  const char* at = version.c_str();
  if (std::isdigit(static_cast<unsigned char>(*at)) == 0) return false;
  for (const int least : oldest) {
    char* rest = nullptr;
    const long number = std::strtol(at, &rest, 10);  // 0 if the version has fewer numbers
    if (number != least) return number < least;
    at = *rest == '.' ? rest + 1 : rest;
  }
  return false;
}

void RefuseOlder(const std::string& server, const std::string& version,
                 const std::vector<int>& oldest, const std::string& install) {
  if (!OlderThan(version, oldest)) return;
  throw Error(ErrorKind::kInput,
              fmt::format("this is {} {}; the oldest that evald drives is {}", server, version,
                          fmt::join(oldest, ".")),
              install + ", or use the engine 'openai'");
}

}  // namespace evald::server
