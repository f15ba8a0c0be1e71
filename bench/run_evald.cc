#include "bench/run_evald.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

extern char** environ;

namespace evald::bench {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

CommandResult RunCommand(const std::vector<std::string>& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) ThrowErrno(command[0], "pipe", errno);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int64_t begin = MonotonicMicros();
  const int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) ThrowErrno(command[0], "start", error);
  write_end.reset();
  CommandResult result;
  char chunk[65536];
  for (ssize_t got = 0; (got = ::read(read_end.get(), chunk, sizeof chunk)) != 0;) {
    if (got > 0) result.output.append(chunk, static_cast<size_t>(got));
  }
  int status = 0;
  struct rusage usage{};
  ::wait4(pid, &status, 0, &usage);
  result.seconds = static_cast<double>(MonotonicMicros() - begin) / 1e6;
  result.cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("'{}' ended with status {:#x}; it printed: {}", Join(command, " "),
                            status, result.output.substr(0, 500)));
  }
  return result;
}

std::filesystem::path WriteText(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  WriteFileAtomic(path, text);
  return path;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace evald::bench
