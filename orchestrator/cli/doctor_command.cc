#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/own_folder.h"
#include "base/print.h"
#include "base/text.h"
#include "metrics/sandbox/sandbox.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/service_checks.h"
#include "orchestrator/devices/gpu_listing.h"
#include "orchestrator/staging/free_space.h"
#include "orchestrator/staging/root.h"
#include "orchestrator/state/database.h"

namespace evald::cli {
namespace {

Check CheckSharedMemory(const std::filesystem::path& root) {
  const std::filesystem::path part = ExistingPartOf(root);
  const std::string remedy = part.string().starts_with("/dev/shm")
                                 ? "; in Docker, start the container with --shm-size"
                                 : "; --staging-root (staging.root) names another";
  try {
    std::optional<SpaceLimit> least;
    for (SpaceLimit& limit : SpaceIn(part)) {
      if (!least || limit.free < least->free) least = std::move(limit);
    }
    const bool fine = !least || least->free >= (1ull << 30);
    return {"staging", fine,
            fmt::format("{} has {} free{}", part.string(), HumanBytes(least ? least->free : 0),
                        fine ? "" : remedy)};
  } catch (const Error& e) {
    return {"staging", false, e.what() + remedy};
  }
}

Check CheckState() {
  try {
    const std::filesystem::path state = DefaultStateDir();
    MakePrivateFolder(state, "set state_dir to a folder of your own");
    Database database(state / "doctor.db");
    for (const char* suffix : {"", "-wal", "-shm"})
      std::filesystem::remove(state / (std::string("doctor.db") + suffix));
    return {"state database", true, state.string()};
  } catch (const Error& e) {
    return {"state database", false, e.what()};
  }
}

Check CheckCache() {
  try {
    const std::filesystem::path cache = DefaultCacheDir();
    MakeOwnFolder(cache, "set cache_dir to a folder of your own");
    return {"cache", true, cache.string()};
  } catch (const Error& e) {
    return {"cache", false, e.what()};
  }
}

Check CheckPrograms(const std::filesystem::path& binaries) {
  for (const char* name : {"evald-worker", "evald-metric"}) {
    if (::access((binaries / name).c_str(), X_OK) != 0) {
      return {"programs", false,
              fmt::format("{} is not beside evald in {}", name, binaries.string())};
    }
  }
  return {"programs", true, binaries.string()};
}

// A machine without a GPU is fine. A machine that cannot list its GPUs is not.
std::vector<Check> CheckGpus(const std::filesystem::path& binaries) {
  const GpuListing listing = ListGpus(binaries);
  std::vector<Check> checks;
  for (const Gpu& gpu : listing.gpus) {
    checks.push_back(
        {"GPU", true,
         fmt::format("{}, {}, {}, compute capability {}{}, {}", gpu.id, gpu.name,
                     HumanBytes(gpu.memory_bytes), gpu.compute,
                     gpu.numa_node < 0 ? "" : fmt::format(", NUMA node {}", gpu.numa_node),
                     listing.driver)});
  }
  if (checks.empty())
    checks.push_back(
        {"GPU", !listing.broken, fmt::format("none: {}; the CPU is used", listing.missing)});
  return checks;
}

struct Flags {
  std::string staging_root;
  ClientFlags client;
};

ExitStatus Doctor(const Common& common, const Flags& flags) {
  std::vector<Check> checks = {
      {"processors", true, fmt::format("{} cores", std::thread::hardware_concurrency())},
      CheckSharedMemory(flags.staging_root.empty() ? DefaultStagingRoot()
                                                   : std::filesystem::absolute(flags.staging_root)),
      CheckState(),
      CheckCache(),
      CheckPrograms(common.binaries)};
  for (Check& check : CheckGpus(common.binaries)) checks.push_back(std::move(check));
  for (const SandboxProbe& probe : ProbeSandbox({})) {
    checks.push_back({"sandbox: " + probe.what, probe.available, probe.detail});
  }
  for (Check& check : CheckService(flags.client)) checks.push_back(std::move(check));
  bool all = true;
  size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.what.size());
  Json list = Json::array();
  for (const Check& check : checks) {
    all = all && check.fine;
    list.push_back({{"what", check.what}, {"available", check.fine}, {"detail", check.detail}});
    if (!common.json)
      Print("{} {:<{}}  {}\n", check.fine ? "✓" : "✗", check.what, width, check.detail);
  }
  if (common.json) PrintJson({{"checks", list}, {"all", all}});
  return all ? ExitStatus::kDone : ExitStatus::kIncomplete;
}

}  // namespace

void AddDoctor(Command app, const Common* common, Action* action) {
  Command command = app.AddCommand("doctor", "Check what this machine offers and what is missing");
  auto flags = std::make_shared<Flags>();
  command
      .AddOption("--staging-root", &flags->staging_root,
                 "Where checkpoints are to be staged; default: /dev/shm/evald-<uid>")
      .Metavar("DIR");
  AddClientFlags(command, &flags->client);
  command.Footer(
      "\nWhere a service runs it is asked for its agents: which are there, which may not join, and "
      "why.\n"
      "Exit status 3 when something is missing that evaluation needs.");
  command.OnChosen([=] { *action = [=] { return Doctor(*common, *flags); }; });
}

}  // namespace evald::cli
