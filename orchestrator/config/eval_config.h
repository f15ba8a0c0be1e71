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
#include "evald/json.h"
#include "metrics/sandbox/sandbox.h"
#include "orchestrator/verdict/gates.h"

namespace evald {

/// The most `bootstrap_iters` that an eval.yaml may ask for. Their own standard error is 1 / sqrt(2
/// n) of the figure: 0.2 % with the default of 100,000, 0.07 % with these.
inline constexpr int kBootstrapItersMax = 1'000'000;

struct WorkersConfig {
  /// As asked for (orchestrator/devices/device_choice.h); after ChooseWorkers those that were
  /// chosen, a worker each.
  std::vector<std::string> devices = {"auto"};
  int count = 0;    ///< of workers on the CPU; in the file's absence one per two cores, at least 1
  int threads = 0;  ///< per worker; in the file's absence cores divided by workers, at least 1
  bool threads_given = false;
  int max_attempts = 3;  ///< how often a trial is leased before the run is incomplete
  double heartbeat_timeout_s = 60;
  double stall_timeout_s = 1800;  ///< of an engine that does not come back
};

struct MetricsConfig {
  int processes = 0;           ///< 0: one per core
  uint64_t backlog_bytes = 0;  ///< of generations that wait for scoring; more are not made then
  int max_attempts = 3;
  SandboxOptions sandbox;
};

struct StagingConfig {
  std::filesystem::path root;  ///< empty: /dev/shm/evald-<uid>
  uint64_t keep_bytes = 0;     ///< budget for checkpoints kept after their last lease
  bool verify = false;         ///< read the checkpoint again although a memo knows its fingerprint
};

/// What reading and preparing other people's files may take: task files, data, templates,
/// tokenizers.
struct LimitsConfig {
  uint64_t line_bytes = uint64_t{64} << 20;  ///< of a line of a data file
  uint64_t file_bytes =
      uint64_t{1}
      << 30;  ///< of a data file that is read whole (.csv, .json with one array), unpacked
  uint64_t memory_bytes = uint64_t{4} << 30;  ///< of the process that prepares, file mappings apart
  uint64_t disk_bytes = uint64_t{64} << 30;   ///< of one file that it writes
  double seconds = 3600;                      ///< that it may take
};

struct EngineConfig {
  std::string name = "native";
  Json settings = Json::object();  ///< every other key of `engine:`
  /// The key `generation_config` of the file. Engines that heed it have it among their settings
  /// where it is kIgnore.
  GenerationConfig::Use generation_config = GenerationConfig::Use::kCheckpoint;
  /// Where each key stands ("file:line" or "--set ..."); "" is `engine:` itself.
  std::map<std::string, std::string> where;
};

/// Whether answers depend on the checkpoint's generation settings: not of engines that have answers
/// already.
bool TakesGenerationConfig(const EngineConfig& engine);

/// How prompts are written; docs/eval-yaml.md, "Chat templates".
struct PromptsConfig {
  bool chat_template = false;
  std::string template_name;          ///< of several; "" for the only one, or the default
  std::optional<ChatDate> chat_date;  ///< the day or moment that templates see
  std::string system_instruction;
  std::optional<bool> fewshot_as_multiturn;  ///< absent: with a chat template

  bool Multiturn() const { return fewshot_as_multiturn.value_or(chat_template); }
};

/// An eval.yaml, read strictly, overrides applied, paths absolute. docs/eval-yaml.md describes each
/// key; docs/eval.schema.json is the same for editors.
struct EvalConfig {
  std::filesystem::path file;
  std::filesystem::path checkpoint;  ///< empty only for engines that need none
  std::string name;                  ///< of the model in results; the checkpoint's folder name
  std::vector<TaskRequest> tasks;
  std::filesystem::path data_dir;
  std::vector<std::filesystem::path> task_dirs;
  std::filesystem::path cache_dir;  ///< prepared tasks
  std::filesystem::path state_dir;  ///< the database
  PromptsConfig prompts;
  EngineConfig engine;
  WorkersConfig workers;
  MetricsConfig metrics;
  StagingConfig staging;
  std::filesystem::path output_dir;
  std::string run_name;  ///< folder under output_dir; empty: made from the name and the time
  uint64_t seed = 1234;  ///< keys the sampling generator
  uint64_t fewshot_seed = 1234;  ///< lm-evaluation-harness's default
  int bootstrap_iters = 100000;
  GatePolicy gates;  ///< what the results must meet; no gates: nothing
  LimitsConfig limits;
  ReadRoots roots;  ///< below which all that it names is read; no key of the file: a service's
                    ///< configuration says
};

/// Values given beside the file.
struct EvalOverrides {
  enum class Folders {
    kLookedAt,  ///< the checkpoint and task_dirs have to be folders
    kJudged,    ///< no file system is looked at: they were when it was submitted
  };
  std::vector<std::string> set;  ///< "key.path=value", the value read as YAML
  std::string data_dir;          ///< --data-dir
  ReadRoots roots;               ///< of the service that it was submitted to
  /// Of that service: what the file leaves out, and the most that it may ask for.
  std::optional<LimitsConfig> limits;
  Folders folders = Folders::kLookedAt;
};

/// Reads an eval.yaml. Throws Error(kUsage) "file:line: ..." for an unknown key (with the nearest
/// valid one), a wrong type, an impossible value or a file that is missing.
EvalConfig ReadEvalConfig(const std::filesystem::path& file, const EvalOverrides& overrides);

/// The same of a text. Relative paths in it start from the folder of `file`, which need not exist
/// and names the text in errors.
EvalConfig ParseEvalConfig(const std::string& text, const std::filesystem::path& file,
                           const EvalOverrides& overrides);

/// The resolved configuration for run.json. With `deciding_only`, the part that decides scores
/// (not the number of workers, nor where files go).
Json ToJson(const EvalConfig& config, bool deciding_only = false);

/// $XDG_CACHE_HOME/evald or ~/.cache/evald; $XDG_STATE_HOME/evald or ~/.local/state/evald. Throws
/// Error(kUsage) where this user has no home folder.
std::filesystem::path DefaultCacheDir();
std::filesystem::path DefaultStateDir();

}  // namespace evald
