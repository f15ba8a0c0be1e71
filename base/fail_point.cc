#include "base/fail_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace evald {
namespace {

struct Chosen {
  std::string name;
  std::atomic<long> left{1};

  Chosen() {
    const char* variable = std::getenv("EVALD_FAIL_POINT");
    if (variable == nullptr) return;
    name = variable;
    const size_t colon = name.find(':');
    if (colon == std::string::npos) return;
    left = std::strtol(name.c_str() + colon + 1, nullptr, 10);
    name.resize(colon);
  }
};

}  // namespace

void FailPoint(std::string_view name) {
  static Chosen chosen;
  if (chosen.name.empty() || chosen.name != name) return;
  if (--chosen.left == 0) ::kill(::getpid(), SIGKILL);
}

}  // namespace evald
