#include "orchestrator/fleet/local_agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>

#include "base/file.h"
#include "base/hash.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Runs between fork and exec: a session of its own, and no descriptor of ours but the log.
[[noreturn]] void BecomeAgent(const char* program, char* const* arguments, int log, int tell) {
  ::setsid();
  const pid_t agent = ::fork();
  if (agent != 0) {  // a grandchild: no process here waits for it
    const ssize_t told = ::write(tell, &agent, sizeof agent);
    ::_exit(told == static_cast<ssize_t>(sizeof agent) ? 0 : 1);
  }
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

pid_t LocalAgent::Spawn() const {
  const fs::path log_path = state_dir / "logs" / "agent.log";
  const UniqueFd log(
      ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!log) ThrowErrno(log_path, "open the log", errno);
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), {"--config-id", Config()});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) ThrowErrno(program, "pipe", errno);
  const UniqueFd hear(ends[0]);
  UniqueFd tell(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) ThrowErrno(program, "fork", errno);
  if (child == 0) BecomeAgent(words[0].c_str(), argv.data(), log.get(), tell.get());
  tell = UniqueFd();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_t agent = 0;
  return ::read(hear.get(), &agent, sizeof agent) == static_cast<ssize_t>(sizeof agent)
             ? std::max(agent, 0)
             : 0;
}

// A zombie does not count: the process that adopted it may not have waited for it yet.
bool LocalAgent::Lives(pid_t pid) {
  if (pid <= 0 || ::kill(pid, 0) != 0) return false;
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.compare(name_end, 4, ") Z ") != 0;
}

}  // namespace evald
