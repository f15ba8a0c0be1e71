#include "orchestrator/prepare/needs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "datasets/task_data.h"
#include "datasets/task_imports.h"
#include "evald/error.h"
#include "metrics/program_languages.h"
#include "metrics/sandbox/language.h"
#include "metrics/scorer.h"

namespace evald {
namespace {

constexpr const char* kKindNames[] = {"data", "code", "package", "program"};
constexpr const char* kTablePackage = "pyarrow";
constexpr const char* kMathPackage = "math_verify";
constexpr const char* kStandIns[] = {"lm_eval", "datasets"};  // task code has stand-ins for them

Need DataNeed(const SplitFound& split) {
  Need need;
  need.kind = Need::Kind::kData;
  need.what = fmt::format("{}{}{}: {}", split.dataset, split.part.empty() ? "" : " ", split.part,
                          split.split);
  need.found = split.files;
  need.there = !split.failure;
  if (split.failure) {
    need.problem = split.failure->message();
    need.remedy = split.failure->remedy();
  }
  return need;
}

// The fault of a task's functions, metrics and filters; null if there is none.
std::optional<Error> FaultOf(const LeafTask& leaf, bool runs_code) {
  TaskDefinition task = DefineTask(leaf);
  if (runs_code) task.sources["code"] = Json::object();
  try {
    if (!runs_code) CheckDocumentFunctions(leaf);
    const Scorer scorable(task, nullptr);
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

// What the tasks need, with the packages that are yet to be looked for.
class Search {
 public:
  explicit Search(const NeedsSearch& search)
      : search_(search),
        modules_{search.task_dirs, {}},
        runs_code_(search.task_code.allowed != TaskCodeOptions::Allowed::kNo) {}

  TaskNeeds Of(const LeafTask& leaf) {
    TaskNeeds out{leaf.name, {}};
    bool tables = false;
    for (const SplitFound& split : FindTaskData(leaf, search_.data_dir, {})) {
      out.needs.push_back(DataNeed(split));
      tables = tables || split.tables;
    }
    AddCode(leaf, &out);
    std::set<std::string> packages = PackagesOfTask(leaf);
    if (tables) packages.insert(kTablePackage);
    if (ComparesMathematics(leaf)) packages.insert(kMathPackage);
    for (const std::string& package : packages) {
      Need need;
      need.kind = Need::Kind::kPackage;
      need.what = package;
      out.needs.push_back(std::move(need));
      wanted_.insert(package);
    }
    AddPrograms(leaf, &out);
    return out;
  }

  // Looks for all packages at once.
  void FindPackages(std::vector<TaskNeeds>* tasks) const {
    if (wanted_.empty()) return;
    const PackagesFound found = search_.packages(wanted_);
    for (TaskNeeds& task : *tasks) {
      std::erase_if(task.needs, [&](const Need& need) {
        return need.kind == Need::Kind::kPackage && found.standard.contains(need.what);
      });
      for (Need& need : task.needs) {
        if (need.kind != Need::Kind::kPackage || found.there.contains(need.what)) continue;
        need.there = false;
        need.problem = fmt::format("{} has no package '{}'", search_.task_code.python, need.what);
        need.remedy = fmt::format(
            "install it ({} -m pip install {}), or name a Python that has it with --task-python",
            search_.task_code.python, need.what);
      }
    }
  }

 private:
  // The functions of the task's own are one need: whether they may run.
  void AddCode(const LeafTask& leaf, TaskNeeds* out) const {
    const std::optional<Error> fault = FaultOf(leaf, runs_code_);
    const std::vector<std::string> own = OwnFunctions(leaf);
    if (own.empty() && !fault) return;
    Need need;
    need.kind = Need::Kind::kCode;
    need.what = own.empty() ? "functions, metrics and filters" : own.front();
    if (own.size() > 1) need.what += fmt::format(" and {} more functions", own.size() - 1);
    need.there = !fault;
    if (fault) {
      need.problem = fault->message();
      need.remedy = fault->remedy();
    }
    out->needs.push_back(std::move(need));
  }

  // Functions of users' files, and those of lm_eval that are not built in.
  std::vector<std::string> OwnFunctions(const LeafTask& leaf) const {
    std::vector<std::string> functions = FunctionsOf(leaf);
    const bool all_built_in = !FaultOf(leaf, false);
    if (all_built_in) return {};
    const bool any_own = std::any_of(functions.begin(), functions.end(),
                                     [](const auto& name) { return IsOwnFunction(name); });
    if (any_own) std::erase_if(functions, [](const auto& name) { return !IsOwnFunction(name); });
    return functions;
  }

  std::set<std::string> PackagesOfTask(const LeafTask& leaf) {
    std::set<std::string> packages;
    bool of_lm_eval = false;
    for (const std::string& function : OwnFunctions(leaf)) {
      of_lm_eval = of_lm_eval || !IsOwnFunction(function);
      const std::filesystem::path module = ModuleOf(function, modules_);
      if (module.empty()) continue;
      const auto [known, fresh] = packages_of_.try_emplace(module.string());
      if (fresh) known->second = PackagesOf(module, modules_);
      packages.insert(known->second.begin(), known->second.end());
    }
    for (const char* package : kStandIns) packages.erase(package);
    if (of_lm_eval) packages.insert("lm_eval");  // the function itself is imported from there
    return packages;
  }

  // Compilers and interpreters of the model's programs. Those that documents name are unknown here.
  void AddPrograms(const LeafTask& leaf, TaskNeeds* out) const {
    if (!RunsPrograms(leaf) || FaultOf(leaf, runs_code_)) return;
    for (const std::string& name : ProgramLanguages(DefineTask(leaf), nullptr)) {
      out->needs.push_back(name == "python" ? PythonNeed(search_.sandbox_python)
                                            : LanguageNeed(*sandbox::FindLanguage(name)));
    }
  }

  static Need PythonNeed(const std::string& python) {
    Need need;
    need.kind = Need::Kind::kProgram;
    need.what = python;
    need.there = ::access(python.c_str(), X_OK) == 0;
    if (!need.there) {
      need.problem = fmt::format("{} is not there, or cannot be run", python);
      need.remedy = "install it; metrics.sandbox.python of eval.yaml names another";
    }
    return need;
  }

  static Need LanguageNeed(const sandbox::Language& language) {
    Need need;
    need.kind = Need::Kind::kProgram;
    need.what = Join(language.needs, ", ");
    const std::string missing = sandbox::MissingTool(language);
    need.there = missing.empty();
    if (!need.there) {
      need.problem =
          fmt::format("programs in {} need {}, which is not there", language.name, missing);
      need.remedy = sandbox::InstallLine(language);
    }
    return need;
  }

  const NeedsSearch& search_;
  TaskModules modules_;
  bool runs_code_;
  std::map<std::string, std::set<std::string>> packages_of_;  ///< by file
  std::set<std::string> wanted_;
};

}  // namespace

bool TaskNeeds::AllThere() const {
  return std::all_of(needs.begin(), needs.end(), [](const Need& need) { return need.there; });
}

const char* ToString(Need::Kind kind) { return kKindNames[static_cast<int>(kind)]; }

std::vector<TaskNeeds> NeedsOf(const ResolvedTasks& tasks, const NeedsSearch& search) {
  Search one(search);
  std::vector<TaskNeeds> out;
  for (const LeafTask& leaf : tasks.leaves) out.push_back(one.Of(leaf));
  one.FindPackages(&out);
  return out;
}

Json ToJson(const TaskNeeds& task) {
  Json needs = Json::array();
  for (const Need& need : task.needs) {
    Json entry = {{"kind", ToString(need.kind)}, {"what", need.what}, {"there", need.there}};
    if (!need.found.empty()) entry["found"] = need.found;
    if (!need.there) {
      entry["problem"] = need.problem;
      entry["remedy"] = need.remedy;
    }
    needs.push_back(std::move(entry));
  }
  return {{"task", task.task}, {"ready", task.AllThere()}, {"needs", std::move(needs)}};
}

}  // namespace evald
