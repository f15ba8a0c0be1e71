// The configuration of a submission: what it may say here, and what this host adds to it.
#include <fmt/format.h>

#include <cerrno>
#include <map>

#include "base/names.h"
#include "orchestrator/config/engine_section.h"
#include "orchestrator/config/judge_section.h"
#include "orchestrator/prepare/preparer.h"
#include "orchestrator/service/engine_access.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/submission.h"
#include "orchestrator/staging/stager.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFileName = "eval.yaml";
constexpr const char* kSubmitted = "the submitted config";  // one without a folder to name it by
// Aggregation takes cores of the service's own host, for this many times the documents of a task.
constexpr int kBootstrapItersSubmittedMax = 100'000;
// The database and the run's folder keep each submission.
constexpr size_t kSubmissionBytesMax = 256 << 10;

// The paths in a configuration, by key.
std::multimap<std::string, fs::path> PathsOf(const EvalConfig& config) {
  std::multimap<std::string, fs::path> paths = {{"checkpoint", config.checkpoint},
                                                {"data_dir", config.data_dir},
                                                {"gates.baseline", config.gates.baseline}};
  for (const fs::path& path : config.task_dirs) paths.emplace("task_dirs", path);
  for (const auto& [key, path] : PathsOf(config.engine)) paths.emplace("engine." + key, path);
  std::erase_if(paths, [](const auto& entry) { return entry.second.empty(); });
  return paths;
}

// A folder that a training run will write checkpoints into may come later, but its parent must
// exist: a name that leads nowhere is a mistake. Returns the one of the two that is there.
fs::path CheckWatched(const fs::path& folder, const ReadRoots& roots) {
  if (roots.HasFolder(folder)) return folder;
  const fs::path above = (folder.has_filename() ? folder : folder.parent_path()).parent_path();
  if (roots.HasFolder(above) && !roots.HasFile(folder)) return above;
  throw Error(ErrorKind::kUsage,
              fmt::format("checkpoints: {} {}", folder.string(),
                          roots.anywhere() ? "is not a folder of this host, and cannot become one"
                                           : ReadRoots::kNotThere),
              "name the folder that a training run writes its checkpoints into; it may come later "
              "where the folder that it "
              "lies in is there");
}

// Refuses paths that cannot be read at once. Later reads go by the roots again.
void CheckPaths(const EvalConfig& config) {
  if (config.roots.anywhere()) return;
  for (const auto& [key, path] : PathsOf(config)) {
    if (config.roots.HasFile(path) || config.roots.HasFolder(path)) continue;
    try {
      config.roots.Refuse(path, ENOENT);
    } catch (const Error& e) {
      throw Error(e.kind(), fmt::format("{}: key '{}': {}", config.called, key, e.message()),
                  e.remedy());
    }
  }
}

void CheckSize(const Submission& submission) {
  size_t bytes = submission.yaml.size();
  for (const std::string& set : submission.set) bytes += set.size();
  if (bytes <= kSubmissionBytesMax) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("eval.yaml: {} bytes with its overrides, expected at most {}", bytes,
                          kSubmissionBytesMax),
              "name tasks by groups, and leave comments out");
}

}  // namespace

// The submitted eval.yaml. Throws Error for settings that a submission may not have here.
EvalConfig Service::Parse(const Submission& submission, EvalOverrides::Folders folders) const {
  if (submission.priority < -100 || submission.priority > 100) {
    throw Error(ErrorKind::kUsage,
                fmt::format("priority: found {}, expected -100 to 100", submission.priority));
  }
  if (const std::string wrong = WrongWithLabel(submission.user);
      !submission.user.empty() && !wrong.empty()) {
    throw Error(ErrorKind::kUsage, "user: " + wrong);
  }
  const fs::path base = submission.base.empty() ? fs::path("/") : submission.base;
  if (!base.is_absolute()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("base: found '{}', expected an absolute path", base.string()));
  }
  EvalOverrides overrides;
  overrides.set = submission.set;
  overrides.roots = options_.roots;
  overrides.limits = options_.limits;
  overrides.task_code = options_.task_code;
  overrides.folders = folders;
  if (submission.base.empty()) overrides.called = kSubmitted;
  if (!submission.file.empty()) overrides.called = submission.file;
  EvalConfig config = ParseEvalConfig(submission.yaml, base / kFileName, overrides);
  CheckEngineIsAllowed(config.engine, options_.engines);
  CheckJudgesAreAllowed(config, options_.engines);
  CheckCommandsAreAllowed(config.tasks, options_.engines);
  if (config.bootstrap_iters > kBootstrapItersSubmittedMax) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("key 'bootstrap_iters': found {}, expected at most {} in a submitted run",
                    config.bootstrap_iters, kBootstrapItersSubmittedMax),
        "leave it out, or use 'evald run' for more");
  }
  return config;
}

EvalConfig Service::ReadSubmission(const Submission& submission, bool weights,
                                   const Cancelled& cancelled) const {
  CheckSize(submission);
  EvalConfig config = Parse(submission, EvalOverrides::Folders::kLookedAt);
  CheckPaths(config);
  CheckJudgeKeys(config);
  PreparationInput input = InputOf(config, PreparationInput::Work::kCheck);
  if (!weights) {  // a watch: the checkpoints are yet to come
    input.weights = input.tokens = false;
    input.max_length.reset();
    input.prompts = {};
  }
  // Reports now what is wrong with a task or a checkpoint. A service that stops takes no
  // submission.
  Preparer(options_.binaries).Ask(input, [&] {
    return draining_ || stopping_ || (cancelled && cancelled());
  });
  if (input.weights) {
    Stager({.root = options_.staging_root, .state = options_.state_dir, .roots = config.roots})
        .CheckFits(config.checkpoint);
  }
  return config;
}

EvalConfig Service::Configure(const Submission& submission, const Cancelled& cancelled) const {
  return ForThisHost(ReadSubmission(submission, true, cancelled));
}

EvalConfig Service::Resolve(const Submission& submission, EvalOverrides::Folders folders) const {
  return ForThisHost(Parse(submission, folders));
}

EvalConfig Service::ForThisHost(EvalConfig config) const {
  config.workers.devices = options_.devices;
  config.workers.count = std::max(1, static_cast<int>(options_.devices.size()));
  config.workers.threads = options_.threads;
  config.metrics.processes = options_.metric_processes;
  config.metrics.sandbox = options_.sandbox;
  config.staging.root = options_.staging_root;
  config.staging.keep_bytes = options_.staging_keep;
  config.launcher.reset();
  config.output_dir = options_.output_dir;
  config.state_dir = options_.state_dir;
  config.cache_dir = options_.cache_dir;
  config.cache_bytes_max = options_.cache_bytes_max;
  return config;
}

// The watched folder, or its parent, stands for the checkpoints that will be in it.
void Service::CheckWatch(Submission submission, const fs::path& folder,
                         std::function<void(const std::optional<Refusal>&)> done) {
  const auto work = [this, submission, folder] {
    Submission judged = submission;
    judged.set.push_back("checkpoint=" +
                         Json(CheckWatched(folder, options_.roots).string()).dump());
    ReadSubmission(judged, false, {});
  };
  loop_.Post([this, user = submission.user, work, done = std::move(done)] {
    HaveJudged(user, {}, work, done);
  });
}

}  // namespace evald
