#include "bench/service_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

extern char** environ;

namespace evald::bench {
namespace {

constexpr int kPatienceTenths = 300;

// The first line read from `end`.
std::string FirstLine(int end) {
  std::string line;
  char c = 0;
  while (::read(end, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

}  // namespace

ServiceProcess::ServiceProcess(const std::filesystem::path& evald,
                               const std::filesystem::path& config) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) ThrowErrno(evald, "pipe", errno);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  std::string words[] = {evald.string(), "serve", config.string(), "--json"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  const int error = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) ThrowErrno(evald, "start", error);
  write_end.reset();
  const std::string line = FirstLine(read_end.get());
  if (line.empty()) throw Error(ErrorKind::kInfrastructure, "'evald serve' ended before it served");
  port_ = static_cast<uint16_t>(
      Field<int>(ParseJson(line, "what evald serve says"), "port", "what evald serve says"));
}

ServiceProcess::~ServiceProcess() {
  ::kill(pid_, SIGTERM);
  for (int i = 0; i < kPatienceTenths; ++i) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

// proc(5): statm's second field counts pages.
uint64_t ServiceProcess::resident_bytes() const {
  const std::vector<std::string> fields = Split(ReadFile(fmt::format("/proc/{}/statm", pid_)), ' ');
  return std::strtoull(fields.at(1).c_str(), nullptr, 10) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// proc(5): utime and stime are fields 14 and 15 of stat. Field 2, in brackets, may contain blanks.
double ServiceProcess::cpu_seconds() const {
  const std::string stat = ReadFile(fmt::format("/proc/{}/stat", pid_));
  const std::vector<std::string> fields = Split(stat.substr(stat.rfind(')') + 2), ' ');
  const double ticks =
      std::strtod(fields.at(11).c_str(), nullptr) + std::strtod(fields.at(12).c_str(), nullptr);
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace evald::bench
