#include "worker/command/command_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <utility>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/placeholders.h"
#include "base/text.h"
#include "evald/error.h"
#include "worker/command/scores.h"

namespace evald::command {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLinesShown = 20, kBytesShown = 2000;
constexpr const char* kProxies[] = {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"};

// A client that heeds proxies must not send calls for this host to one.
void AddNoProxy(std::map<std::string, std::string>* environment) {
  const bool proxies = std::any_of(std::begin(kProxies), std::end(kProxies),
                                   [](const char* name) { return std::getenv(name) != nullptr; });
  if (!proxies) return;
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    const char* const given = std::getenv(name);
    const std::string before = given == nullptr || *given == '\0' ? "" : std::string(given) + ",";
    (*environment)[name] = before + "127.0.0.1,localhost";
  }
}

std::string Quoted(const std::vector<std::string>& words) {
  std::vector<std::string> shown;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"") == word.npos;
    shown.push_back(plain ? word : "'" + PrintableLine(word) + "'");
  }
  return Join(shown, " ");
}

}  // namespace

CommandRun::CommandRun(Engine* engine, CommandOrder order)
    : order_(std::move(order)), api_(engine, order_.checkpoint) {
  MakeDirectories(order_.folder);
  MakeDirectories(order_.log.parent_path());
  const ProgramOrder program = OrderFor(PlaceholderValues());
  WriteHead(program);
  log::Info("task {}: {} in {}", order_.task, PrintableLine(program.words[0]),
            order_.folder.string());
  program_.emplace(program);
}

CommandRun::Values CommandRun::PlaceholderValues() const {
  return {{"base_url", api_.base_url()},
          {"api_key", api_.key()},
          {"model", api_.model()},
          {"checkpoint", order_.checkpoint.string()},
          {"output", order_.folder.string()},
          {"eval_dir", order_.spec.eval_dir}};
}

std::map<std::string, std::string> CommandRun::Environment(const Values& values) const {
  std::map<std::string, std::string> environment = {
      {"OPENAI_BASE_URL", api_.base_url()},
      {"OPENAI_API_KEY", api_.key()},
      {"EVALD_MODEL", api_.model()},
      {"EVALD_CHECKPOINT", order_.checkpoint.string()},
      {"EVALD_OUTPUT", order_.folder.string()}};
  AddNoProxy(&environment);
  for (const auto& [name, value] : order_.spec.environment)
    environment[name] = ReplacePlaceholders(value, values);
  return environment;
}

ProgramOrder CommandRun::OrderFor(const Values& values) const {
  ProgramOrder order;
  for (const std::string& word : order_.spec.command)
    order.words.push_back(ReplacePlaceholders(word, values));
  std::string& program = order.words.at(0);
  if (program.find('/') != program.npos && !program.starts_with('/'))
    program = (fs::path(order_.spec.eval_dir) / program).lexically_normal().string();
  order.environment = Environment(values);
  order.folder = order_.folder;
  order.log = order_.log;
  order.time_limit =
      std::chrono::milliseconds(static_cast<int64_t>(order_.spec.time_limit_s * 1000));
  return order;
}

// The words as eval.yaml has them: {api_key} is not put in.
void CommandRun::WriteHead(const ProgramOrder& order) const {
  std::ofstream log(order.log, std::ios::app);
  log << fmt::format("== evald, {:%Y-%m-%d %H:%M:%S} UTC: {} (in {})\n",
                     fmt::gmtime(std::time(nullptr)), Quoted(order_.spec.command),
                     order_.folder.string());
}

std::string CommandRun::LastLines() const {
  std::string tail(Trim(program_->LogTail()));
  if (tail.empty()) return "; it printed nothing";
  size_t begin = tail.size();
  for (size_t lines = 0; lines < kLinesShown && begin != 0 && begin != tail.npos; ++lines)
    begin = tail.rfind('\n', begin - 1);
  begin = begin == tail.npos ? 0 : begin;
  const bool cut = tail.size() - begin > kBytesShown;
  if (cut) begin = tail.size() - kBytesShown;
  return fmt::format("; its output ({}) ends:\n{}{}", order_.log.string(), cut ? "…" : "",
                     Printable(ReplaceInvalidUtf8(std::string(Trim(tail.substr(begin))))));
}

std::string CommandRun::Ending(const ProgramEnd& end) const {
  switch (end.why) {
    case ProgramEnd::Why::kExited:
      return fmt::format("ended with exit status {}", end.value);
    case ProgramEnd::Why::kSignalled:
      return fmt::format("was ended by signal {} ({})", end.value, ::strsignal(end.value));
    case ProgramEnd::Why::kNotStarted:
      return fmt::format("cannot be started: {}", ::strerror(end.value));
    case ProgramEnd::Why::kTimeLimit:
      return fmt::format("was ended after its time limit of {:g} s", order_.spec.time_limit_s);
    case ProgramEnd::Why::kLost:
      break;
  }
  return "was lost: the process that watched it was killed";
}

void CommandRun::CheckEnd(const ProgramEnd& end) const {
  using Why = ProgramEnd::Why;
  if (end.why == Why::kExited && end.value == 0) return;
  const std::string what =
      fmt::format("the command '{}' {}", PrintableLine(order_.spec.command[0]), Ending(end));
  if (end.why == Why::kLost) throw Error(ErrorKind::kInfrastructure, what);
  if (end.why == Why::kNotStarted)
    throw Error(ErrorKind::kInput, what, "install it, or name it by its path");
  if (!api_.alive()) {
    throw Error(ErrorKind::kInfrastructure,
                what + ", when the model no longer answered" + LastLines());
  }
  throw Error(ErrorKind::kInput, what + LastLines(),
              end.why == Why::kTimeLimit ? "'time_limit' sets it" : "");
}

std::optional<Generation> CommandRun::Wait(std::chrono::milliseconds time) {
  const auto end = program_->Wait(time);
  if (!end) {
    // An engine that is broken leaves the program waiting until its time is over.
    if (!api_.alive())
      throw Error(ErrorKind::kInfrastructure, "the model no longer answers the command");
    return std::nullopt;
  }
  CheckEnd(*end);
  CommandSpec spec = order_.spec;
  spec.results_file = ReplacePlaceholders(spec.results_file, PlaceholderValues());
  Generation generation;
  try {
    generation.text = ToLine(ReadScores(order_.folder, spec));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) throw;
    throw Error(e.kind(), e.message() + LastLines(), e.remedy());
  }
  return generation;
}

}  // namespace evald::command
