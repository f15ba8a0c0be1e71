#include "metrics/sandbox/box_process.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/own_folder.h"
#include "metrics/sandbox/contained.h"
#include "metrics/sandbox/filter.h"
#include "metrics/sandbox/interpreter.h"

namespace evald::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kOpenFiles = 256;
constexpr uint64_t kTasks = 64;  // threads: numerical libraries start some

std::string MakeScratch() {
  std::string name = (TmpFolder() / "evald-task-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) ThrowErrno(name, "making", errno);
  return name;
}

std::vector<std::string> Arguments(const BoxOptions& options, const Interpreter& interpreter) {
  Json packages = interpreter.packages;
  for (const std::string& folder : interpreter.site_packages) packages.push_back(folder);
  std::vector<std::string> arguments = {interpreter.executable, "-S",           "-s", "-B", "-c",
                                        options.script,         packages.dump()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return arguments;
}

/// Settings that make functions give the same each time, and keep libraries from the network.
std::vector<std::string> Environment(const std::string& folder) {
  return {"PYTHONHASHSEED=0",       "PYTHONUTF8=1",
          "LANG=C.UTF-8",           "TZ=UTC",
          "HOME=" + folder,         "TMPDIR=" + folder,
          "HF_HUB_OFFLINE=1",       "HF_DATASETS_OFFLINE=1",
          "TRANSFORMERS_OFFLINE=1", "OMP_NUM_THREADS=1",
          "OPENBLAS_NUM_THREADS=1", "MALLOC_ARENA_MAX=1"};
}

RootPlan RootOf(const Interpreter& interpreter, const BoxOptions& options, bool own_ids) {
  Interpreter all = interpreter;
  all.packages.insert(all.packages.end(), interpreter.site_packages.begin(),
                      interpreter.site_packages.end());
  RootPlan root = PlanRoot(all);
  root.tmp_bytes = options.tmpfs_bytes;
  root.tmp_owner = own_ids ? kProgramUid : 0;
  return root;
}

ContainPlan PlanOf(const BoxOptions& options, const Interpreter& interpreter,
                   const std::string& scratch) {
  ContainPlan plan;
  plan.namespaces = !options.unsafe;
  plan.arguments = Arguments(options, interpreter);
  plan.environment = Environment(options.unsafe ? scratch : "/tmp");
  plan.restrictions.emplace();
  plan.restrictions->limits = {options.memory_bytes, options.tmpfs_bytes, kOpenFiles, 0};
  if (!plan.namespaces) return plan;
  plan.user = ChooseUser();
  plan.root = RootOf(interpreter, options, plan.user.own_ids);
  plan.restrictions->limits.tasks = kTasks + (plan.user.own_ids ? 0 : 2);
  FilterOptions allowed;
  allowed.machine_code = true;
  allowed.interpreter = true;
  plan.restrictions->filter = BuildFilter(allowed);
  return plan;
}

class OwnBoxProcess : public BoxProcess {
 public:
  OwnBoxProcess(const BoxOptions& options, const Interpreter& interpreter)
      : interpreter_(interpreter),
        scratch_(options.unsafe ? MakeScratch() : ""),
        process_(PlanOf(options, interpreter, scratch_)) {}
  ~OwnBoxProcess() override {
    process_.Stop(kEndGraceMs);
    std::error_code ignored;
    if (!scratch_.empty()) fs::remove_all(scratch_, ignored);
  }

  int control() const override { return process_.control(); }
  int errors() const override { return process_.errors(); }
  int Stop(int grace_ms) override { return process_.Stop(grace_ms); }
  Json Installed() const override {
    return {{"python", interpreter_.version}, {"packages", InstalledPackages(interpreter_)}};
  }

 private:
  static constexpr int kEndGraceMs = 50;  // it has nothing to save

  const Interpreter& interpreter_;
  std::string scratch_;  ///< unsafe: the program's temporary folder
  Contained process_;
};

}  // namespace

std::unique_ptr<BoxProcess> StartBoxProcess(const BoxOptions& options) {
  return std::make_unique<OwnBoxProcess>(options, FindInterpreter(options.python));
}

}  // namespace evald::sandbox
