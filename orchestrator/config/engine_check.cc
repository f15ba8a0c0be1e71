#include "orchestrator/config/engine_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"

extern char** environ;

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kAnswerBytesMax = 1 << 20;

std::string ReadToEnd(int fd) {
  std::string text;
  char chunk[4096];
  while (text.size() < kAnswerBytesMax) {
    const ssize_t got = ::read(fd, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk, static_cast<size_t>(got));
  }
  return text;
}

// What the program prints on standard output; its standard error is ours.
std::string OutputOf(const fs::path& program, std::vector<std::string> arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) ThrowErrno("pipe", "opening", errno);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  std::vector<char*> argv;
  arguments.insert(arguments.begin(), program.string());
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
  pid_t pid = -1;
  const int failure = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) ThrowErrno(program, "starting", failure);
  to.reset();
  const std::string output = ReadToEnd(from.get());
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return output;
}

[[noreturn]] void Refuse(const EngineConfig& engine, const Json& answer, const std::string& where) {
  const std::string key = FieldOr<std::string>(answer, "key", "", where);
  const auto given = engine.where.find(key);
  const auto whole = engine.where.find("");
  std::string place = "eval.yaml";
  if (whole != engine.where.end()) place = whole->second;
  if (given != engine.where.end()) place = given->second;
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: key 'engine{}{}': {}", place, key.empty() ? "" : ".", key,
                          Field<std::string>(answer, "error", where)),
              FieldOr<std::string>(answer, "remedy", "", where));
}

}  // namespace

void CheckEngineSettings(const EvalConfig& config, const fs::path& binaries) {
  const fs::path program = binaries / "evald-worker";
  const std::string output =
      OutputOf(program, {"--check-settings", "--engine", config.engine.name, "--settings",
                         ToLine(config.engine.settings), "--log-level", "off"});
  const std::string where = program.string() + " --check-settings";
  Json answer;
  try {
    answer = ParseJson(output, where);
  } catch (const Error& e) {
    throw Error(ErrorKind::kInfrastructure, e.message(), "see whether it is of this build");
  }
  if (!answer.is_object() || !FieldOr<bool>(answer, "ok", false, where)) {
    Refuse(config.engine, answer, where);
  }
}

}  // namespace evald
