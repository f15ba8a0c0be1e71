#include "base/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory_file.h"
#include "base/text.h"
#include "evald/error.h"

extern char** environ;

namespace evald {
namespace {

constexpr int64_t kDyingMicros = 1'000'000;
constexpr useconds_t kWaitPollMicros = 2'000;
constexpr int64_t kLookMillis = 100;  // between two looks whether a program is given up

struct Pipe {
  UniqueFd from, to;
  static Pipe Make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) ThrowErrno("pipe", "opening", errno);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
};

// This process's environment with the call's variables.
std::vector<std::string> EnvironmentOf(const ProgramCall& call) {
  std::vector<std::string> variables;
  for (char** variable = environ; !call.clears_environment && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (call.environment.count(std::string(text.substr(0, text.find('=')))) == 0)
      variables.emplace_back(text);
  }
  for (const auto& [name, value] : call.environment) variables.push_back(name + "=" + value);
  return variables;
}

// Starts the program in a process group of its own. A descriptor of -1 is inherited.
pid_t Spawn(const ProgramCall& call, int input, int output, int errors) {
  std::vector<std::string> words = call.arguments, variables = EnvironmentOf(call);
  words.insert(words.begin(), call.program.string());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int kept[] = {input, output, errors};
  for (int number = 0; number < 3; ++number) {
    if (kept[number] >= 0) posix_spawn_file_actions_adddup2(&actions, kept[number], number);
  }
  // Sockets on which this process listens would otherwise stay open in the program.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int failure = posix_spawnp(&pid, call.program.c_str(), &actions, &attributes,
                                   ExecPointers(&words).data(), ExecPointers(&variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0)
    throw NotStarted(fmt::format("{}: starting: {}", call.program.string(), ::strerror(failure)));
  return pid;
}

// Appends what is there to read; what is too long is dropped. False at the end of the text.
bool ReadSome(int fd, std::string* text) {
  char chunk[4096];
  const ssize_t got = ::read(fd, chunk, sizeof chunk);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  if (text->size() < kProgramOutputMax) text->append(chunk, static_cast<size_t>(got));
  return true;
}

bool GivenUp(const ProgramCall& call) { return call.given_up != nullptr && call.given_up->load(); }

// False if the time is up before the end of both texts, or the program is given up.
bool ReadToEnd(const ProgramCall& call, int output, int errors, int64_t until,
               ProgramResult* result) {
  pollfd ends[] = {{output, POLLIN, 0}, {errors, POLLIN, 0}};
  std::string* const texts[] = {&result->output, &result->errors};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const int64_t left = (until - MonotonicMicros()) / 1000;
    if (left <= 0 || GivenUp(call)) return false;
    if (::poll(ends, 2, static_cast<int>(std::min(left, kLookMillis))) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (ends[i].fd >= 0 && ends[i].revents != 0 && !ReadSome(ends[i].fd, texts[i]))
        ends[i].fd = -1;
    }
  }
  return true;
}

// Waits for the process and collects its status; nothing if it has not ended by `until`, or is
// given up.
std::optional<int> WaitUntil(pid_t pid, int64_t until, const ProgramCall* call = nullptr) {
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended != 0 && !(ended < 0 && errno == EINTR))
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (MonotonicMicros() >= until || (call != nullptr && GivenUp(*call))) return std::nullopt;
    ::usleep(kWaitPollMicros);
  }
}

}  // namespace

std::filesystem::path OnPath(const std::string& program) {
  const auto runs = [](const std::filesystem::path& file) {
    return ::access(file.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos)
    return runs(program) ? std::filesystem::path(program) : std::filesystem::path();
  const char* path = std::getenv("PATH");
  for (const std::string& folder : Split(path == nullptr ? "/bin:/usr/bin" : path, ':')) {
    const std::filesystem::path found = std::filesystem::path(folder) / program;
    if (runs(found)) return found;
  }
  return {};
}

std::vector<char*> ExecPointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

ProgramResult RunProgram(const ProgramCall& call) {
  const UniqueFd input = call.input ? MemoryFile(*call.input) : UniqueFd();
  Pipe output = Pipe::Make(), errors = call.keeps_errors ? Pipe::Make() : Pipe();
  const pid_t pid = Spawn(call, input.get(), output.to.get(), errors.to.get());
  output.to.reset();
  errors.to.reset();
  const int64_t until = MonotonicMicros() + call.timeout.count() * 1000;
  ProgramResult result;
  if (ReadToEnd(call, output.from.get(), errors.from.get(), until, &result)) {
    if (const std::optional<int> status = WaitUntil(pid, until, &call)) {
      result.status = *status;
      return result;
    }
  }
  const bool given_up = GivenUp(call);
  ::kill(-pid, SIGKILL);
  WaitUntil(pid, MonotonicMicros() + kDyingMicros);
  if (given_up) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{} was given up before it answered", call.program.string()));
  }
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{} has not answered within {:g} s", call.program.string(),
                          static_cast<double>(call.timeout.count()) / 1e3));
}

void StartProgram(const ProgramCall& call) {
  const UniqueFd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nowhere) ThrowErrno("/dev/null", "open", errno);
  const UniqueFd input = call.input ? MemoryFile(*call.input) : UniqueFd();
  Spawn(call, input ? input.get() : nowhere.get(), nowhere.get(), nowhere.get());
}

std::string OutputOf(const std::filesystem::path& program, std::vector<std::string> arguments,
                     std::chrono::milliseconds timeout, const std::optional<std::string>& input) {
  return RunProgram({program, std::move(arguments), timeout, input}).output;
}

}  // namespace evald
