#include "orchestrator/launch/step.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "base/program.h"
#include "evald/error.h"

extern char** environ;

namespace evald {
namespace {

namespace fs = std::filesystem;

}  // namespace

StepCall StepOf(const Allocation& allocation, const fs::path& evald,
                const std::vector<std::string>& agent, const fs::path& log) {
  StepCall call;
  call.log = log;
  // --overlap: the script or shell that runs evald holds the nodes' processors, too.
  call.arguments = {"srun",
                    "--overlap",
                    "--jobid=" + allocation.job,
                    fmt::format("--nodes={}", allocation.nodes),
                    fmt::format("--ntasks={}", allocation.nodes),
                    "--ntasks-per-node=1",
                    "--mem=0",
                    "--no-kill",
                    "--kill-on-bad-exit=0",
                    "--wait=0",
                    "--label",
                    "--input=none",
                    "--export=ALL",
                    evald.string(),
                    "agent"};
  call.arguments.insert(call.arguments.end(), agent.begin(), agent.end());
  return call;
}

Step::Step(const StepCall& call, const std::string& join) {
  const UniqueFd log(::open(call.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) ThrowErrno(call.log, "open", errno);
  std::vector<std::string> arguments = call.arguments, variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  variables.push_back("EVALD_JOIN=" + join);
  const std::vector<char*> argv = ExecPointers(&arguments), envp = ExecPointers(&variables);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(ErrorKind::kInfrastructure, fmt::format("fork: {}", ::strerror(errno)));
  if (pid == 0) {  // only calls that are safe after fork
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(log.get(), 1);
    ::dup2(log.get(), 2);
    ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execvpe(argv[0], argv.data(), envp.data());
    const char failed[] = "srun cannot be started\n";
    (void)!::write(2, failed, sizeof failed - 1);
    ::_exit(127);
  }
  pid_ = pid;
}

Step::~Step() {
  if (Ended()) return;
  Signal(SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
}

std::optional<std::string> Step::Ended() {
  int status = 0;
  if (!ended_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    ended_ = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                 : fmt::format("exit status {}", WEXITSTATUS(status));
  }
  return ended_;
}

void Step::Signal(int number) {
  if (!Ended()) ::kill(pid_, number);
}

}  // namespace evald
