#include "orchestrator/config/command_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/json_path.h"
#include "base/names.h"
#include "base/placeholders.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task_limits.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr double kTimeLimitMax = 30 * 86400.0;
constexpr size_t kWordsMax = 1000, kVariablesMax = 100;
constexpr size_t kTextBytesMax = size_t{64} << 10;
constexpr const char* kFolder = "{eval_dir}";
// What evald itself tells the program.
constexpr const char* kOwnVariables[] = {"OPENAI_BASE_URL", "OPENAI_API_KEY", "EVALD_MODEL",
                                         "EVALD_CHECKPOINT", "EVALD_OUTPUT"};

std::string ReadText(const YamlSection& section, const std::string& key, const Json& value) {
  if (!value.is_string() && !value.is_number() && !value.is_boolean())
    section.Refuse(key,
                   fmt::format("found {}, expected text{}", value.dump(),
                               value.is_object() ? "; quote a word that begins with '{'" : ""));
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.size() > kTextBytesMax || text.find('\0') != std::string::npos)
    section.Refuse(key, "a text has more than 64 KiB, or a NUL");
  const std::vector<std::string> known(std::begin(kCommandPlaceholders),
                                       std::end(kCommandPlaceholders));
  const std::string unknown = UnknownPlaceholder(text, known);
  if (unknown.empty()) return text;
  section.Refuse(
      key, fmt::format("'{}': there is no placeholder {{{}}}{}; known are {{{}}}, and "
                       "{{{{{}}}}} stands for the text {{{}}}",
                       Shortened(PrintableLine(text), 100), unknown, Suggestion(unknown, known),
                       Join(known, "}, {"), unknown, unknown));
}

void ReadWords(YamlSection* section, CommandSpec* spec) {
  const Json words = section->Value("command");
  if (words.is_string()) {
    section->Refuse("command", fmt::format("found '{}', expected a list of words such as "
                                           "[inspect, eval, task.py]: no shell reads it",
                                           words.get<std::string>()));
  }
  if (!words.is_array() || words.empty() || words.size() > kWordsMax)
    section->Refuse("command", fmt::format("expected a list of 1 to {} words", kWordsMax));
  for (const Json& word : words) spec->command.push_back(ReadText(*section, "command", word));
  if (spec->command[0].empty())
    section->Refuse("command", "the first word is empty, expected a program");
}

void ReadEnvironment(YamlSection* section, CommandSpec* spec) {
  const Json variables = section->Value("environment");
  if (variables.is_null()) return;
  if (!variables.is_object() || variables.size() > kVariablesMax) {
    section->Refuse("environment",
                    fmt::format("expected a mapping of at most {} variables", kVariablesMax));
  }
  for (const auto& [name, value] : variables.items()) {
    const bool valid = !name.empty() && name.find_first_of(std::string("=\0", 2)) == name.npos;
    if (!valid) section->Refuse("environment", fmt::format("'{}' is no variable's name", name));
    if (std::find(std::begin(kOwnVariables), std::end(kOwnVariables), name) !=
        std::end(kOwnVariables)) {
      section->Refuse("environment",
                      fmt::format("evald itself sets {}; give the program another variable", name));
    }
    spec->environment[name] = ReadText(*section, "environment", value);
  }
}

void CheckScoreName(const YamlSection& section, const std::string& name) {
  std::string wrong = WrongWithName(name);
  if (name.find(',') != name.npos) wrong = "it has a comma";
  if (name.ends_with("_stderr")) wrong = "it ends with _stderr, as standard errors do";
  if (!wrong.empty())
    section.Refuse("scores", fmt::format("the name '{}': {}", PrintableLine(name), wrong));
}

CommandScore ReadScore(const YamlSection& section, const std::string& name, const Json& value) {
  CheckScoreName(section, name);
  CommandScore score{name, "", true};
  const bool long_form = value.is_object();
  const Json path = long_form ? value.value("path", Json()) : value;
  const Json higher = long_form ? value.value("higher_is_better", Json(true)) : Json(true);
  const size_t known =
      (value.contains("path") ? 1 : 0) + (value.contains("higher_is_better") ? 1 : 0);
  if (!path.is_string() || !higher.is_boolean() || (long_form && value.size() != known)) {
    section.Refuse("scores",
                   fmt::format("'{}': found {}, expected a path such as $.accuracy, or {{path: "
                               "$.loss, higher_is_better: false}}",
                               name, Shortened(value.dump(), 100)));
  }
  score.path = path.get<std::string>();
  score.higher_is_better = higher.get<bool>();
  try {
    static_cast<void>(JsonPath(score.path));
  } catch (const Error& e) {
    section.Refuse("scores", fmt::format("'{}': {}", name, e.what()));
  }
  return score;
}

void ReadResults(YamlSection* section, CommandSpec* spec) {
  auto results = section->Section("results");
  if (!results)
    section->RefuseAbsent("results", "absent, expected {file: ..., scores: {accuracy: $...}}");
  const Json file = results->Value("file"), scores = results->Value("scores");
  if (file.is_null())
    results->RefuseAbsent("file", "absent, expected the file that the program writes");
  spec->results_file = ReadText(*results, "file", file);
  const fs::path path = spec->results_file;
  if (path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end()) {
    results->Refuse("file", fmt::format("found '{}', expected a path within the program's folder",
                                        PrintableLine(spec->results_file)));
  }
  if (!scores.is_object() || scores.empty() || scores.size() > kMetricsMax) {
    results->Refuse("scores", fmt::format("expected a mapping of 1 to {} scores, such as "
                                          "{{accuracy: $.results.accuracy}}",
                                          kMetricsMax));
  }
  for (const auto& [name, value] : scores.items())
    spec->scores.push_back(ReadScore(*results, name, value));
  results->Finish();
}

bool NeedsFolder(const CommandSpec& spec) {
  const std::string& program = spec.command[0];
  bool needs = program.find('/') != program.npos && !program.starts_with('/');
  const auto look = [&](const std::string& text) {
    needs = needs || text.find(kFolder) != text.npos;
  };
  for (const std::string& word : spec.command) look(word);
  for (const auto& [name, value] : spec.environment) look(value);
  return needs;
}

}  // namespace

TaskRequest ReadCommandTask(YamlSection section, const fs::path& file) {
  TaskRequest task;
  task.command.emplace();
  CommandSpec& spec = *task.command;
  for (const char* key :
       {"task", "limit", "limit_total", "num_fewshot", "repeats", "sample_metrics",
        "generation_kwargs", "metadata", "enable_thinking", "think_end_token", "judge"}) {
    if (section.Has(key))
      section.Refuse(key, "does not apply to a command: the program decides what it asks");
  }
  const auto name = section.String("name");
  if (!name) section.RefuseAbsent("name", "absent, expected the name of the task in results");
  if (const std::string wrong = WrongWithName(*name); !wrong.empty())
    section.Refuse("name", fmt::format("'{}': {}", PrintableLine(*name), wrong));
  task.name = *name;
  ReadWords(&section, &spec);
  ReadEnvironment(&section, &spec);
  ReadResults(&section, &spec);
  spec.time_limit_s = section.Number("time_limit", 0.1, kTimeLimitMax).value_or(spec.time_limit_s);
  section.Finish();
  if (NeedsFolder(spec)) spec.eval_dir = fs::absolute(file).parent_path().lexically_normal();
  task.where = section.Where();
  return task;
}

void CheckCommands(const EvalConfig& config) {
  const EngineKind& kind = config.engine.kind();
  for (const TaskRequest& task : config.tasks) {
    if (!task.command) continue;
    const bool replays = kind.generations_key != nullptr;
    const bool server = !GivenServer(kind, config.engine.settings).empty();
    if (!replays && (server || !config.checkpoint.empty())) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: the command '{}' cannot run with the engine '{}', which {}",
                            task.where, task.name, config.engine.name,
                            replays ? "has earlier answers only" : "has no model here"),
                replays ? "use an engine that computes" : "name a 'checkpoint'");
  }
}

}  // namespace evald
