#include "orchestrator/config/key_hints.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace evald {
namespace {

constexpr const char* kTask = "an entry of 'tasks', as in tasks: [{task: gsm8k, ";

// Other tools' names for keys of eval.yaml.
struct OtherName {
  const char* name;
  const char* section;
  const char* key;
};
constexpr OtherName kOtherNames[] = {
    {"model", "", "checkpoint"},
    {"model_path", "", "checkpoint"},
    {"model_name_or_path", "", "checkpoint"},
    {"pretrained", "", "checkpoint"},
    {"task", "", "tasks"},
    {"include_path", "", "task_dirs"},
    {"apply_chat_template", "", "chat_template"},
    {"output_path", "output", "dir"},
    {"output_dir", "output", "dir"},
    {"run_name", "output", "name"},
    {"device", "workers", "devices"},
    {"num_workers", "workers", "count"},
    {"gen_kwargs", "", "generation_kwargs"},
    {"fewshot", "", "num_fewshot"},
};

// The members of generation_kwargs that are most often given in the wrong place.
constexpr const char* kSampling[] = {"temperature",    "top_p",     "top_k", "max_gen_toks",
                                     "max_new_tokens", "do_sample", "until"};

const char* ExampleOf(const std::string& key) {
  if (key == "limit" || key == "limit_total") return ": 100}]";
  if (key == "enable_thinking") return ": true}]";
  if (key == "think_end_token") return ": \"</think>\"}]";
  if (key == "generation_kwargs") return ": {temperature: 0.7}}]";
  return ": 5}]";
}

// The place where a key belongs, for people.
std::string PlaceOf(const std::string& section, const std::string& key) {
  if (section.empty()) return "the top of the file";
  if (section == "tasks[]" && key == "task") return "an entry of 'tasks'";
  if (section == "tasks[]") return std::string(kTask) + key + ExampleOf(key);
  if (section == "gates.rules[]") return "an entry of 'gates.rules'";
  return fmt::format("'{}'", section);
}

// The section without numbers: "tasks[2]" becomes "tasks[]".
std::string Numberless(const std::string& section) {
  const size_t open = section.find('[');
  return open == std::string::npos ? section : section.substr(0, open) + "[]";
}

bool Holds(const EvalKeys& mapping, const std::string& key) {
  return std::find(mapping.keys.begin(), mapping.keys.end(), key) != mapping.keys.end();
}

}  // namespace

const std::vector<EvalKeys>& AllEvalKeys() {
  static const std::vector<EvalKeys> kKeys = {
      {"",
       {"checkpoint",
        "name",
        "tasks",
        "limit",
        "num_fewshot",
        "generation_kwargs",
        "data_dir",
        "task_dirs",
        "task_code",
        "task_python",
        "engine",
        "workers",
        "metrics",
        "staging",
        "launcher",
        "limits",
        "output",
        "chat_template",
        "chat_template_args",
        "chat_date",
        "system_instruction",
        "fewshot_as_multiturn",
        "judge",
        "generation_config",
        "seed",
        "fewshot_seed",
        "bootstrap_iters",
        "cache_dir",
        "cache_limit",
        "state_dir",
        "gates"}},
      {"engine", {"name", "enable_thinking", "think_end_token"}},
      {"tasks[]",
       {"task", "limit", "limit_total", "num_fewshot", "repeats", "sample_metrics",
        "generation_kwargs", "metadata", "enable_thinking", "think_end_token", "judge", "command",
        "name", "environment", "results", "time_limit"}},
      {"tasks[].results", {"file", "scores"}},
      {"workers",
       {"devices", "devices_per_worker", "count", "threads", "max_attempts", "stall_timeout_s",
        "heartbeat_timeout_s"}},
      {"metrics", {"processes", "max_attempts", "backlog", "sandbox"}},
      {"metrics.sandbox",
       {"python", "cpu_seconds", "wall_seconds", "memory_bytes", "tmpfs_bytes", "output_bytes",
        "processes", "unsafe", "allow_processes", "allow_ctypes"}},
      {"staging", {"root", "keep", "verify"}},
      {"launcher", {"slurm", "command"}},
      {"launcher.slurm",
       {"nodes", "partition", "gpus_per_node", "cpus_per_node", "time", "warning", "agent",
        "agent_within", "retry", "poll", "evald", "logs", "sbatch"}},
      {"launcher.command",
       {"nodes", "gpus_per_node", "agent", "agent_within", "retry", "poll", "evald", "start",
        "stop", "list", "log"}},
      {"judge",
       {"base_url", "model", "api_key_env", "concurrency", "timeout_s", "retries", "max_tokens",
        "temperature"}},
      {"limits", {"line", "file", "memory", "disk", "seconds"}},
      {"output", {"dir", "name"}},
      {"gates", {"baseline", "alpha", "resolution", "other_versions", "truncated", "rules"}},
      {"gates.truncated", {"max", "tier", "name"}},
      {"gates.rules[]",
       {"name", "task", "metric", "filter", "min", "max", "max_drop", "max_relative_drop",
        "confident", "direction", "tier", "resolution"}},
  };
  return kKeys;
}

std::string HintOfEvalKey(const std::string& section, const std::string& key) {
  const std::string here = Numberless(section);
  std::vector<std::string> places;
  for (const EvalKeys& mapping : AllEvalKeys()) {
    if (!Holds(mapping, key)) continue;
    // Engines have settings of the same names
    if (here != "judge" && std::string_view(mapping.section) == "judge") continue;
    if (mapping.section == here) return "";
    places.push_back(PlaceOf(mapping.section, key));
  }
  for (const OtherName& other : kOtherNames) {
    if (key != other.name || (other.section != here && !places.empty())) continue;
    if (other.section == here) return fmt::format("; here this is '{}'", other.key);
    const std::string section_of = other.section;
    return fmt::format(
        "; here this is '{}' {}", other.key,
        section_of.empty() ? "at the top of the file" : "in " + PlaceOf(section_of, other.key));
  }
  if (std::find(std::begin(kSampling), std::end(kSampling), key) != std::end(kSampling) &&
      here != "engine") {
    return fmt::format("; it belongs to 'generation_kwargs' in {}",
                       PlaceOf("tasks[]", "generation_kwargs"));
  }
  return places.empty() ? "" : "; it belongs to " + Join(places, ", or to ");
}

}  // namespace evald
