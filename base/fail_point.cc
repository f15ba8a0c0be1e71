#include "base/fail_point.h"

#include <errno.h>  // program_invocation_short_name
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace evald {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The environment's orders for this process.
struct Plan {
  std::string name;  // the point to die at; "" for none
  std::atomic<long> left{1};
  std::string once = Variable("EVALD_FAIL_POINT_ONCE");
  std::string log = Variable("EVALD_FAIL_POINT_LOG");
  bool active = false;

  Plan() {
    name = Variable("EVALD_FAIL_POINT");
    const size_t slash = name.find('/');
    if (slash != std::string::npos) {
      const bool mine = name.compare(0, slash, program_invocation_short_name) == 0;
      name = mine ? name.substr(slash + 1) : "";
    }
    const size_t colon = name.find(':');
    if (colon != std::string::npos) {
      left = std::strtol(name.c_str() + colon + 1, nullptr, 10);
      name.resize(colon);
    }
    active = !name.empty() || !log.empty();
  }

  void Log(std::string_view point) const {
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const std::string line =
        std::string(program_invocation_short_name) + "/" + std::string(point) + "\n";
    if (file < 0 || ::write(file, line.data(), line.size()) < 0) ::abort();
    ::close(file);
  }
};

}  // namespace

void FailPoint(std::string_view name) {
  static Plan plan;
  if (!plan.active) return;
  if (!plan.log.empty()) plan.Log(name);
  if (plan.name != name || --plan.left != 0) return;
  if (!plan.once.empty() && ::unlink(plan.once.c_str()) != 0) return;
  ::kill(::getpid(), SIGKILL);
}

}  // namespace evald
