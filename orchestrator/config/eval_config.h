#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/chat_date.h"
#include "base/read_roots.h"
#include "checkpoint/generation_config.h"
#include "datasets/task_set.h"
#include "engines/engines.h"
#include "evald/json.h"
#include "metrics/sandbox/sandbox.h"
#include "orchestrator/config/gates.h"
#include "orchestrator/config/launcher_config.h"
#include "task_code/task_code.h"

namespace evald {

/// The most `bootstrap_iters` that an eval.yaml may ask for. A standard error from n iterations
/// itself has a relative standard error of 1 / sqrt(2 n): 0.2 % with the default of 100,000, 0.07 %
/// with these.
inline constexpr int kBootstrapItersMax = 1'000'000;

struct WorkersConfig {
  /// The requested devices (orchestrator/devices/device_choice.h). After ChooseWorkers the chosen
  /// ones, one worker each.
  std::vector<std::string> devices = {"auto"};
  int devices_per_worker = 1;  ///< GPUs of each worker; 1 after ChooseWorkers, which names groups
  int count = 0;               ///< workers on the CPU; if absent one per two cores, at least 1
  int threads = 0;             ///< per worker; if absent cores divided by workers, at least 1
  bool threads_given = false;
  int max_attempts = 3;  ///< how often a trial is leased before the run is incomplete
  double heartbeat_timeout_s = 60;
  double stall_timeout_s = 1800;  ///< for an engine that does not come back
};

struct MetricsConfig {
  int processes = 0;  ///< 0: one per core
  bool processes_given = false;
  uint64_t backlog_bytes = 0;  ///< generations that wait for scoring; above this no more are made
  int max_attempts = 3;
  SandboxOptions sandbox;
};

struct StagingConfig {
  std::filesystem::path root;  ///< empty: /dev/shm/evald-<uid>
  uint64_t keep_bytes = 0;     ///< budget for checkpoints kept after their last lease
  bool verify = false;         ///< read the checkpoint again even if a memo knows its fingerprint
};

/// Default of cache_limit: bytes that all prepared tasks of a cache may take together.
inline constexpr uint64_t kCacheBytesMax = uint64_t{64} << 30;

/// Limits on reading and preparing other people's files: task files, data, templates, tokenizers.
struct LimitsConfig {
  uint64_t line_bytes = uint64_t{64} << 20;  ///< of a line of a data file
  /// A data file that is read as a whole (.csv, .json with one array), unpacked
  uint64_t file_bytes = uint64_t{1} << 30;
  /// The process that prepares, without file mappings
  uint64_t memory_bytes = uint64_t{4} << 30;
  /// Documents and requests of one prepared task; also each other file that it writes
  uint64_t disk_bytes = uint64_t{16} << 30;
  double seconds = 3600;  ///< for its whole work
};

struct EngineConfig {
  std::string name = kDefaultEngine;
  Json settings = Json::object();  ///< every other key of `engine:`
  const EngineKind& kind() const { return EngineNamed(name); }
  /// The key `generation_config` of the file. If it is kIgnore, engines that heed it also have it
  /// among their settings.
  GenerationConfig::Use generation_config = GenerationConfig::Use::kCheckpoint;
  /// The keys `enable_thinking` and `think_end_token`: those of every task that does not give its
  /// own. They decide prompts and requests, and are no settings of the workers.
  std::optional<bool> enable_thinking;
  ThinkEnd think_end;
  /// The place of each key ("file:line" or "--set ..."); "" is `engine:` itself.
  std::map<std::string, std::string> where;
};

/// How prompts are written; docs/eval-yaml.md, "Chat templates".
struct PromptsConfig {
  bool chat_template = false;
  std::string template_name;          ///< which of several; "" for the only one, or the default
  std::optional<ChatDate> chat_date;  ///< the day or moment that templates see
  std::string system_instruction;
  std::optional<bool> fewshot_as_multiturn;  ///< if absent: as chat_template
  /// The key chat_template_args: variables for the template
  Json template_arguments = Json::object();

  bool Multiturn() const { return fewshot_as_multiturn.value_or(chat_template); }
};

/// An eval.yaml, read strictly, with overrides applied and paths absolute. docs/eval-yaml.md
/// describes each key; docs/eval.schema.json has the same for editors.
struct EvalConfig {
  std::filesystem::path file;
  std::string called;                ///< the file's name in errors
  std::filesystem::path checkpoint;  ///< empty only for engines that need none
  std::string name;                  ///< the model's name in results; the checkpoint's folder name
  std::vector<TaskRequest> tasks;
  std::filesystem::path data_dir;
  std::vector<std::filesystem::path> task_dirs;
  TaskCodeOptions task_code;        ///< the keys `task_code` and `task_python`
  std::filesystem::path cache_dir;  ///< prepared tasks
  uint64_t cache_bytes_max = kCacheBytesMax;
  std::filesystem::path state_dir;  ///< the database
  PromptsConfig prompts;
  Json judge;  ///< the key `judge` (judge_section.h); null: absent
  EngineConfig engine;
  WorkersConfig workers;
  MetricsConfig metrics;
  StagingConfig staging;
  std::optional<LauncherConfig> launcher;  ///< of the nodes that compute in place of this host
  std::filesystem::path output_dir;
  std::string run_name;  ///< folder under output_dir; if empty made from the name and the time
  uint64_t seed = 1234;  ///< keys the sampling generator
  uint64_t fewshot_seed = 1234;  ///< lm-evaluation-harness's default
  int bootstrap_iters = 100000;
  GatePolicy gates;  ///< rules that the results must meet
  LimitsConfig limits;
  /// Folders below which everything that it names is read; set by a service's configuration, not by
  /// the file
  ReadRoots roots;
  /// The model's programs run on this host alone; set by the commands of which this holds, not by
  /// the file. A task in a language without its compiler is then refused before the run
  bool programs_here = false;
};

/// Values given besides the file.
struct EvalOverrides {
  enum class Folders {
    kLookedAt,  ///< the checkpoint and task_dirs must be folders
    kJudged,    ///< no file system is looked at: it was when the run was submitted
  };
  std::vector<std::string> set;  ///< "key.path=value", the value read as YAML
  std::string data_dir;          ///< --data-dir
  bool allow_task_code = false;  ///< --allow-task-code
  ReadRoots roots;               ///< of the service that the run was submitted to
  /// That service's limits: defaults for the file, and the most that it may ask for.
  std::optional<LimitsConfig> limits;
  /// How that service runs Python code of task files, for a file that asks for it
  std::optional<TaskCodeOptions> task_code = {};
  Folders folders = Folders::kLookedAt;
  /// Names a text in errors that is no file; "": its `file` does
  std::string called = {};
  /// Of overrides that were not given by --set: the option with its value, by the override
  std::map<std::string, std::string> typed = {};
};

/// Reads an eval.yaml. Throws Error(kUsage) "file:line: ..." for an unknown key (with the nearest
/// valid one), a wrong type, an impossible value or a missing file.
EvalConfig ReadEvalConfig(const std::filesystem::path& file, const EvalOverrides& overrides);

/// The same for a text. Relative paths in it start from the folder of `file`, which need not exist
/// and names the text in errors unless `overrides.called` does.
EvalConfig ParseEvalConfig(const std::string& text, const std::filesystem::path& file,
                           const EvalOverrides& overrides);

/// The resolved configuration for run.json. `deciding_only`: only the part that decides scores (not
/// the number of workers, nor where files go).
Json ToJson(const EvalConfig& config, bool deciding_only = false);

/// $XDG_CACHE_HOME/evald or ~/.cache/evald; $XDG_STATE_HOME/evald or ~/.local/state/evald. Throws
/// Error(kUsage) if this user has no home folder.
std::filesystem::path DefaultCacheDir();
std::filesystem::path DefaultStateDir();

}  // namespace evald
