#include "orchestrator/cli/harness_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "base/text.h"
#include "evald/error.h"
#include "evald/json.h"

namespace evald::cli {
namespace fs = std::filesystem;
namespace {

enum class Takes { kNothing, kOneOrNothing, kOne, kSeveral };

struct Option {
  const char* name;
  const char* letter;  ///< its short form, or ""
  Takes takes;
  /// Why it is left out of the translation; null if it is translated
  const char* left_out;
};

// The options of `lm_eval run` (lm_eval/_cli/run.py, release 0.4.13).
constexpr Option kOptions[] = {
    {"model", "M", Takes::kOne, nullptr},
    {"model_args", "a", Takes::kSeveral, nullptr},
    {"tasks", "t", Takes::kSeveral, nullptr},
    {"num_fewshot", "f", Takes::kOne, nullptr},
    {"limit", "L", Takes::kOne, nullptr},
    {"gen_kwargs", "", Takes::kSeveral, nullptr},
    {"apply_chat_template", "", Takes::kOneOrNothing, nullptr},
    {"fewshot_as_multiturn", "", Takes::kOneOrNothing, nullptr},
    {"system_instruction", "", Takes::kOne, nullptr},
    {"include_path", "", Takes::kOne, nullptr},
    {"output_path", "o", Takes::kOne, nullptr},
    {"device", "", Takes::kOne, nullptr},
    {"seed", "", Takes::kOne, nullptr},
    {"batch_size", "b", Takes::kOne, "evald batches by what fits"},
    {"max_batch_size", "", Takes::kOne, "evald batches by what fits"},
    {"log_samples", "s", Takes::kNothing, "evald always writes samples"},
    {"use_cache", "c", Takes::kOne, "a run that was interrupted goes on with --resume"},
    {"cache_requests", "", Takes::kOneOrNothing, "prepared requests are always kept"},
    {"check_integrity", "", Takes::kNothing, "`evald validate` checks the tasks"},
    {"write_out", "w", Takes::kNothing, "prompts are in the samples"},
    {"show_config", "", Takes::kNothing, "results.json has the tasks' configurations"},
    {"verbosity", "v", Takes::kOne, "`evald --log-level` sets it"},
    {"wandb_args", "", Takes::kSeveral, "evald has webhooks in its place"},
    {"wandb_config_args", "", Takes::kSeveral, "evald has webhooks in its place"},
    {"trackio_args", "", Takes::kSeveral, "evald has webhooks in its place"},
    {"hf_hub_log_args", "", Takes::kSeveral, "evald uploads nothing"},
    {"trust_remote_code", "", Takes::kNothing, "evald runs no code of a checkpoint or dataset"},
    {"confirm_run_unsafe_code", "", Takes::kNothing, "a model's code always runs in a sandbox"},
};
// They change scores, and evald has nothing like them.
constexpr const char* kNoCounterpart[] = {"config", "samples", "predict_only", "metadata"};

struct ModelKind {
  const char* name;    ///< --model
  const char* engine;  ///< evald's
};
constexpr ModelKind kModels[] = {{"hf", "native"},
                                 {"hf-auto", "native"},
                                 {"huggingface", "native"},
                                 {"vllm", "vllm"},
                                 {"sglang", "sglang"},
                                 {"sglang-generate", "sglang"},
                                 {"local-completions", "openai"},
                                 {"openai-completions", "openai"}};

// A member of --model_args and the key of eval.yaml for it, for the engines named.
struct ModelArgument {
  const char* name;
  const char* engine;  ///< "": every engine
  const char* section;
  const char* key;
};
constexpr ModelArgument kModelArguments[] = {
    {"pretrained", "", "", "checkpoint"},
    {"max_length", "", "engine", "max_length"},
    {"max_model_len", "", "engine", "max_length"},
    {"context_length", "sglang", "engine", "max_length"},
    {"dtype", "vllm", "engine", "dtype"},
    {"dtype", "sglang", "engine", "dtype"},
    {"gpu_memory_utilization", "vllm", "engine", "memory_share"},
    {"mem_fraction_static", "sglang", "engine", "memory_share"},
    {"tensor_parallel_size", "", "workers", "devices_per_worker"},
    {"tp_size", "", "workers", "devices_per_worker"},
    {"enable_thinking", "", "engine", "enable_thinking"},
    {"think_end_token", "", "engine", "think_end_token"},
    {"chat_template_args", "", "", "chat_template_args"},
    {"num_concurrent", "openai", "engine", "concurrency"},
    {"model", "openai", "engine", "model"},
};

[[noreturn]] void Refuse(const std::string& message, const std::string& remedy) {
  throw Error(ErrorKind::kUsage, message, remedy);
}

const Option* Find(const std::string& word) {
  for (const Option& option : kOptions) {
    const bool is_short = word.size() == 2 && word[0] == '-' && word.substr(1) == option.letter;
    if (is_short || word == std::string("--") + option.name) return &option;
  }
  return nullptr;
}

bool IsOption(const std::string& word) {
  return word.starts_with("--") || (word.size() == 2 && word[0] == '-' && std::isalpha(word[1]));
}

using Given = std::map<std::string, std::vector<std::string>>;

Given Read(const std::vector<std::string>& words) {
  const auto is_harness = [](const std::string& word) {
    const std::string name = fs::path(word).filename().string();
    return name == "lm_eval" || name == "lm-eval";
  };
  auto at = std::find_if(words.begin(), words.end(), is_harness);
  at = at == words.end() ? words.begin() : at + 1;
  if (at != words.end() && *at == "run") ++at;
  Given given;
  while (at != words.end()) {
    std::string word = *at++;
    std::optional<std::string> joined;  // --option=value
    if (const size_t equals = word.find('='); word.starts_with("--") && equals != word.npos) {
      joined = word.substr(equals + 1);
      word.resize(equals);
    }
    const Option* option = Find(word);
    if (option == nullptr) {
      for (const char* name : kNoCounterpart) {
        if (word == std::string("--") + name)
          Refuse(fmt::format("{} has no counterpart in evald", word), "see docs/from-lm-eval.md");
      }
      Refuse(fmt::format("'{}' is no option of lm_eval 0.4.13", word),
             "give the command line as it was: evald translate lm_eval --model hf --tasks gsm8k");
    }
    std::vector<std::string>& values = given[option->name];
    if (joined) values.push_back(*joined);
    const size_t most = joined || option->takes == Takes::kNothing ? 0
                        : option->takes == Takes::kSeveral         ? SIZE_MAX
                                                                   : 1;
    for (size_t i = 0; i < most && at != words.end() && !IsOption(*at); ++i)
      values.push_back(*at++);
    if (values.empty() && (option->takes == Takes::kOne || option->takes == Takes::kSeveral))
      Refuse(fmt::format("{} has no value", word), "");
  }
  return given;
}

// The value of key=value as the harness reads it: a literal of Python's, or text.
Json ValueOf(const std::string& text) {
  if (text == "True" || text == "true") return true;
  if (text == "False" || text == "false") return false;
  if (text == "None") return nullptr;
  std::string json = text;
  if (text.find('"') == std::string::npos) std::replace(json.begin(), json.end(), '\'', '"');
  const Json value = Json::parse(json, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

// "a=1,b=[1,2]" and several words of this form; or one JSON object.
std::vector<std::pair<std::string, Json>> Pairs(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, Json>> pairs;
  for (const std::string& word : words) {
    const Json object = Json::parse(word, nullptr, false);
    if (object.is_object()) {
      for (const auto& [key, value] : object.items()) pairs.emplace_back(key, value);
      continue;
    }
    int depth = 0;
    std::string part;
    const auto end = [&] {
      const size_t equals = part.find('=');
      if (equals == std::string::npos && !Trim(part).empty())
        Refuse(fmt::format("'{}' is not of the form key=value", part), "");
      if (equals != std::string::npos)
        pairs.emplace_back(Trim(part.substr(0, equals)), ValueOf(part.substr(equals + 1)));
      part.clear();
    };
    for (const char c : word) {
      depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
      if (c == ',' && depth == 0) {
        end();
      } else {
        part += c;
      }
    }
    end();
  }
  return pairs;
}

class Translator {
 public:
  explicit Translator(const Given& given) : given_(given) {}

  HarnessTranslation Translate() {
    ChooseEngine();
    for (const auto& [key, value] : Pairs(Values("model_args"))) AddModelArgument(key, value);
    if (engine_ != "openai" && !Has("", "checkpoint"))
      Refuse("--model_args has no pretrained=...", "evald needs the checkpoint's folder");
    AddTasks();
    AddPrompts();
    AddPlaces();
    for (const Option& option : kOptions) {
      if (option.left_out != nullptr && given_.count(option.name) > 0)
        out_.notes.push_back(fmt::format("--{} is left out: {}", option.name, option.left_out));
    }
    out_.yaml = Text();
    return std::move(out_);
  }

 private:
  std::vector<std::string> Values(const std::string& name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? std::vector<std::string>() : found->second;
  }
  std::optional<std::string> Value(const std::string& name) const {
    const std::vector<std::string> values = Values(name);
    return values.empty() ? std::nullopt : std::optional(values.back());
  }

  void Set(const std::string& section, const std::string& key, const Json& value) {
    sections_[section].emplace_back(key, value);
  }
  bool Has(const std::string& section, const std::string& key) {
    const auto& keys = sections_[section];
    return std::any_of(keys.begin(), keys.end(), [&](const auto& one) { return one.first == key; });
  }

  void ChooseEngine() {
    const std::string model = Value("model").value_or("hf");
    std::vector<std::string> known;
    for (const ModelKind& kind : kModels) {
      known.emplace_back(kind.name);
      if (model == kind.name) engine_ = kind.engine;
    }
    if (engine_.empty())
      Refuse(fmt::format("--model {} has no counterpart in evald", model),
             "evald translates " + Join(known, ", "));
    Set("engine", "name", engine_);
  }

  void AddModelArgument(const std::string& name, const Json& value) {
    if (name == "base_url" && engine_ == "openai") {
      std::string url = value.is_string() ? value.get<std::string>() : value.dump();
      for (const char* end : {"/completions", "/v1"}) {
        if (url.ends_with(end)) url.resize(url.size() - std::string(end).size());
      }
      return Set("engine", "base_url", url);
    }
    for (const ModelArgument& known : kModelArguments) {
      const bool fits = known.engine[0] == '\0' || engine_ == known.engine;
      if (name != known.name || !fits) continue;
      if (std::string(known.key) == "checkpoint" && !fs::is_directory(value.get<std::string>())) {
        out_.notes.push_back(fmt::format(
            "{} is no folder here: evald reads a checkpoint's folder, and downloads nothing",
            value.get<std::string>()));
      }
      return Set(known.section, known.key, value);
    }
    const bool is_dtype = name == "dtype" && engine_ == "native";
    out_.notes.push_back(
        is_dtype ? std::string("dtype is left out: the native engine reads weights in the "
                               "checkpoint's type and adds products in fp32")
                 : fmt::format("{} of --model_args is left out: evald's {} engine has no such key",
                               name, engine_));
  }

  void AddTasks() {
    Json tasks = Json::array();
    for (const std::string& word : Values("tasks")) {
      for (const std::string& name : Split(word, ',')) {
        if (name.find_first_of("*?[") != std::string::npos)
          Refuse(fmt::format("--tasks: '{}' stands for several names", Trim(name)),
                 "name the tasks or their group, as 'evald tasks' lists them");
        if (!Trim(name).empty()) tasks.push_back(Trim(name));
      }
    }
    if (tasks.empty()) Refuse("--tasks names no task", "");
    Set("", "tasks", tasks);
    if (const auto limit = Value("limit")) {
      const double number = std::strtod(limit->c_str(), nullptr);
      if (!(number > 0))
        Refuse(fmt::format("--limit: found '{}', expected a number above 0", *limit), "");
      Set("", "limit", number >= 1 ? Json(static_cast<int64_t>(number)) : Json(number));
    }
    if (const auto shots = Value("num_fewshot")) Set("", "num_fewshot", ValueOf(*shots));
    Json kwargs = Json::object();
    for (const auto& [key, value] : Pairs(Values("gen_kwargs"))) kwargs[key] = value;
    if (!kwargs.empty()) Set("", "generation_kwargs", kwargs);
  }

  void AddPrompts() {
    if (given_.count("apply_chat_template") > 0)
      Set("", "chat_template", ValueOf(Value("apply_chat_template").value_or("true")));
    if (given_.count("fewshot_as_multiturn") > 0)
      Set("", "fewshot_as_multiturn", ValueOf(Value("fewshot_as_multiturn").value_or("true")));
    if (const auto text = Value("system_instruction")) Set("", "system_instruction", *text);
    if (const auto seed = Value("seed")) {
      const std::vector<std::string> seeds = Split(*seed, ',');
      Set("", "fewshot_seed", ValueOf(seeds.size() == 4 ? seeds[3] : seeds[0]));
    }
  }

  void AddPlaces() {
    if (const auto folder = Value("include_path")) {
      Set("", "task_dirs", Json::array({*folder}));
      out_.notes.emplace_back(
          "task files with Python functions of their own also need `task_code: allow`");
    }
    if (const auto folder = Value("output_path")) Set("output", "dir", *folder);
    if (Value("device") == "cpu") Set("workers", "devices", Json::array({"cpu:0"}));
    if (const std::string device = Value("device").value_or("cpu"); device.starts_with("cuda:")) {
      out_.notes.push_back(fmt::format(
          "--device {} is left out: evald uses every GPU that it finds; workers.devices names one "
          "by its UUID (nvidia-smi -L)",
          device));
    }
    out_.notes.emplace_back("data_dir names the folder that datasets lie in");
  }

  std::string Text() {
    std::string text;
    for (const auto& [key, value] : sections_[""])
      text += fmt::format("{}: {}\n", key, value.dump());
    for (const char* section : {"engine", "workers", "output"}) {
      if (sections_[section].empty()) continue;
      text += fmt::format("{}:\n", section);
      for (const auto& [key, value] : sections_[section])
        text += fmt::format("  {}: {}\n", key, value.dump());
    }
    return text;
  }

  const Given& given_;
  std::string engine_;
  std::map<std::string, std::vector<std::pair<std::string, Json>>> sections_;
  HarnessTranslation out_;
};

}  // namespace

HarnessTranslation TranslateHarness(const std::vector<std::string>& words) {
  const Given given = Read(words);
  return Translator(given).Translate();
}

}  // namespace evald::cli
