#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/cores.h"
#include "base/file.h"
#include "base/own_folder.h"
#include "base/print.h"
#include "base/program.h"
#include "base/text.h"
#include "engines/engines.h"
#include "metrics/sandbox/sandbox.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/service_checks.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/devices/gpu_listing.h"
#include "orchestrator/launch/allocation.h"
#include "orchestrator/launch/slurm_text.h"
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

// The version of a program of a Python environment, by the name of its folder <name>-<version>
// .dist-info: to start such a program takes seconds. "" if there is none.
std::string InstalledVersion(const std::filesystem::path& program) {
  std::error_code ignored;
  const auto real = std::filesystem::canonical(program, ignored);
  const std::string prefix = program.filename().string() + "-", suffix = ".dist-info";
  for (const auto& python :
       std::filesystem::directory_iterator(real.parent_path().parent_path() / "lib", ignored)) {
    for (const auto& entry :
         std::filesystem::directory_iterator(python.path() / "site-packages", ignored)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(prefix) && name.ends_with(suffix))
        return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    }
  }
  return "";
}

// Servers that engines start. None is needed.
Check CheckServers() {
  std::vector<std::string> found, missing;
  for (const EngineKind& kind : Engines()) {
    if (kind.program == nullptr) continue;
    const std::filesystem::path path = OnPath(kind.program);
    if (path.empty()) {
      missing.emplace_back(kind.program);
      continue;
    }
    const std::string version = InstalledVersion(path);
    found.push_back(path.string() + (version.empty() ? "" : " (" + version + ")"));
  }
  if (!missing.empty()) found.push_back("not on PATH: " + Join(missing, ", "));
  return {"servers", true, Join(found, "; ")};
}

// Slurm, of which nothing is needed. Within a job, the job's nodes.
Check CheckSlurm() {
  std::string found;
  try {
    ProgramCall call{"sbatch", {"--version"}, std::chrono::seconds(5), ""};
    call.keeps_errors = true;
    const ProgramResult result = RunProgram(call);
    if (result.status != 0) return {"slurm", true, "not usable: " + slurm::CauseIn(result.errors)};
    found = Trim(result.output);
  } catch (const NotStarted&) {
    return {"slurm", true, "not here: sbatch is not on PATH"};
  } catch (const Error& e) {
    return {"slurm", true, std::string("not usable: ") + e.what()};
  }
  const std::optional<Allocation> allocation = AllocationHere(OwnVariable);
  if (allocation)
    found += fmt::format("; within job {} of {} node{}", allocation->job, allocation->nodes,
                         allocation->nodes == 1 ? "" : "s");
  return {"slurm", true, PrintableLine(Shortened(found, 200))};
}

struct DoctorFlags {
  std::string staging_root;
  ClientFlags client;
};

ExitStatus Doctor(const Common& common, const DoctorFlags& flags) {
  std::vector<Check> checks = {
      {"processors", true, fmt::format("{} cores", UsableCores())},
      CheckSharedMemory(flags.staging_root.empty() ? DefaultStagingRoot()
                                                   : std::filesystem::absolute(flags.staging_root)),
      CheckState(),
      CheckCache(),
      CheckPrograms(common.binaries)};
  for (Check& check : CheckGpus(common.binaries)) checks.push_back(std::move(check));
  checks.push_back(CheckServers());
  checks.push_back(CheckSlurm());
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
  auto flags = std::make_shared<DoctorFlags>();
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
