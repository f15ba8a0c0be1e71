#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "metrics/sandbox/sandbox.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/state/database.h"

namespace evald::cli {
namespace {

struct Check {
  std::string what;
  bool fine = false;
  std::string detail;
};

Check CheckSharedMemory() {
  struct statvfs info {};
  if (::statvfs("/dev/shm", &info) != 0) {
    return {"shared memory", false, "/dev/shm is not mounted; set staging.root to a tmpfs"};
  }
  const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  const bool fine = free_bytes >= (1ull << 30);
  return {"shared memory", fine,
          fmt::format("/dev/shm has {} free{}", HumanBytes(free_bytes),
                      fine ? "" : "; in Docker, start the container with --shm-size")};
}

Check CheckState() {
  const std::filesystem::path state = DefaultStateDir();
  try {
    Database database(state / "doctor.db");
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(state / (std::string("doctor.db") + suffix));
    return {"state database", true, state.string()};
  } catch (const Error& e) {
    return {"state database", false, e.what()};
  }
}

Check CheckPrograms(const std::filesystem::path& binaries) {
  for (const char* name : {"evald-worker", "evald-metric"}) {
    if (::access((binaries / name).c_str(), X_OK) != 0) {
      return {"programs", false, fmt::format("{} is not beside evald in {}", name, binaries.string())};
    }
  }
  return {"programs", true, binaries.string()};
}

Check CheckGpu() {
  const bool present = ::access("/dev/nvidia0", F_OK) == 0;
  return {"GPU", true, present ? "an NVIDIA device is present; this build has no CUDA worker, the CPU is used"
                               : "none; the CPU is used"};
}

ExitStatus Doctor(const Common& common) {
  std::vector<Check> checks = {
      {"processors", true, fmt::format("{} cores", std::thread::hardware_concurrency())},
      CheckSharedMemory(), CheckState(), CheckPrograms(common.binaries), CheckGpu()};
  for (const SandboxProbe& probe : ProbeSandbox({})) {
    checks.push_back({"sandbox: " + probe.what, probe.available, probe.detail});
  }
  bool all = true;
  size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.what.size());
  Json list = Json::array();
  for (const Check& check : checks) {
    all = all && check.fine;
    list.push_back({{"what", check.what}, {"available", check.fine}, {"detail", check.detail}});
    if (!common.json) fmt::print("{} {:<{}}  {}\n", check.fine ? "✓" : "✗", check.what, width, check.detail);
  }
  if (common.json) PrintJson({{"checks", list}, {"all", all}});
  return all ? ExitStatus::kDone : ExitStatus::kIncomplete;
}

}  // namespace

void AddDoctor(CLI::App* app, const Common* common, Action* action) {
  CLI::App* command = app->add_subcommand("doctor", "Check what this machine offers and what is missing");
  command->footer("\nExit status 3 when something is missing that evaluation needs.");
  command->callback([=] { *action = [=] { return Doctor(*common); }; });
}

}  // namespace evald::cli
