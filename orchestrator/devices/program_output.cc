#include "orchestrator/devices/program_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory_file.h"
#include "evald/error.h"

extern char** environ;

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kOutputBytesMax = 1 << 20;
constexpr int64_t kDyingMicros = 1'000'000;
constexpr useconds_t kWaitPollMicros = 2'000;

pid_t Spawn(const fs::path& program, std::vector<std::string> arguments, int input, int output) {
  std::vector<char*> argv;
  arguments.insert(arguments.begin(), program.string());
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (input >= 0) posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  pid_t pid = -1;
  const int failure = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) ThrowErrno(program, "starting", failure);
  return pid;
}

// False if the time is up before the end of the text.
bool ReadToEnd(int fd, int64_t until, std::string* text) {
  char chunk[4096];
  while (true) {
    const int64_t left = (until - MonotonicMicros()) / 1000;
    pollfd ready{fd, POLLIN, 0};
    if (left <= 0) return false;
    const int polled = ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (polled == 0 || (polled < 0 && errno == EINTR)) continue;
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || text->size() >= kOutputBytesMax) return true;
    text->append(chunk, static_cast<size_t>(got));
  }
}

// Waits for the process and collects its status. False if the process has not ended by `until`.
bool WaitUntil(pid_t pid, int64_t until) {
  while (true) {
    const pid_t ended = ::waitpid(pid, nullptr, WNOHANG);
    if (ended != 0 && !(ended < 0 && errno == EINTR)) return true;
    if (MonotonicMicros() >= until) return false;
    ::usleep(kWaitPollMicros);
  }
}

}  // namespace

std::string OutputOf(const fs::path& program, std::vector<std::string> arguments,
                     std::chrono::milliseconds timeout, const std::optional<std::string>& input) {
  const UniqueFd given = input ? MemoryFile(*input) : UniqueFd();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) ThrowErrno("pipe", "opening", errno);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t pid = Spawn(program, std::move(arguments), given.get(), to.get());
  to.reset();
  const int64_t until = MonotonicMicros() + timeout.count() * 1000;
  std::string output;
  if (ReadToEnd(from.get(), until, &output) && WaitUntil(pid, until)) return output;
  ::kill(pid, SIGKILL);
  WaitUntil(pid, MonotonicMicros() + kDyingMicros);
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{} has not answered within {:g} s", program.string(),
                          static_cast<double>(timeout.count()) / 1e3));
}

}  // namespace evald
