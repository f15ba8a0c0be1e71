#include "orchestrator/fleet/local_agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>

#include "base/file.h"
#include "base/hash.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Between fork and exec: a session of its own, no descriptor of ours but the log.
[[noreturn]] void BecomeAgent(const char* program, char* const* arguments, int log) {
  ::setsid();
  if (::fork() != 0) ::_exit(0);  // the child of a child: nobody here waits for it
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, UINT_MAX, 0);
  ::execv(program, arguments);
  ::_exit(127);
}

}  // namespace

std::string LocalAgent::Config() const {
  std::string text = program.string();
  for (const std::string& argument : arguments) text += '\0' + argument;
  return HashHex(text);
}

bool LocalAgent::Runs() const {
  const UniqueFd lock(::open((state_dir / kAgentLock).c_str(), O_RDWR | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

void LocalAgent::Spawn() const {
  const fs::path log_path = state_dir / "logs" / "agent.log";
  const UniqueFd log(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log) ThrowErrno(log_path, "open the log", errno);
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), {"--config-id", Config()});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) ThrowErrno(program, "fork", errno);
  if (child == 0) BecomeAgent(words[0].c_str(), argv.data(), log.get());
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace evald
