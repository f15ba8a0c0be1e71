#include "worker/command/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/program.h"
#include "base/text.h"
#include "evald/error.h"

extern char** environ;

namespace evald::command {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) ThrowErrno("pipe", "create", errno);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::map<std::string, std::string> MergedEnvironment(const ProgramOrder& order) {
  std::map<std::string, std::string> merged = order.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != text.npos) merged.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return merged;
}

bool IsProgram(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// The path of `program`; "" and errno in `failure` if there is none.
std::string FindProgram(const std::string& program, const std::string& path_variable,
                        int* failure) {
  *failure = ENOENT;
  if (program.find('/') != program.npos) {
    if (IsProgram(program)) return program;
    if (::access(program.c_str(), F_OK) == 0) *failure = EACCES;
    return "";
  }
  for (const std::string& folder : Split(path_variable, ':')) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + program;
    if (IsProgram(path)) return path;
  }
  return "";
}

}  // namespace

Program::Program(const ProgramOrder& order) {
  const std::map<std::string, std::string> environment = MergedEnvironment(order);
  const auto path = environment.find("PATH");
  int failure = 0;
  const std::string program = FindProgram(
      order.words.at(0), path == environment.end() ? "/usr/bin:/bin" : path->second, &failure);
  if (program.empty()) {
    end_ = ProgramEnd{ProgramEnd::Why::kNotStarted, failure};
    return;
  }
  Start(order, program);
}

void Program::Start(const ProgramOrder& order, const std::string& path) {
  Pipe life = MakePipe();
  Pipe report = MakePipe();
  Pipe output = MakePipe();
  std::vector<std::string> words = order.words;
  std::vector<std::string> variables;
  for (const auto& [name, value] : MergedEnvironment(order))
    variables.push_back(name + "=" + value);
  const std::vector<char*> arguments = ExecPointers(&words);
  const std::vector<char*> environment = ExecPointers(&variables);
  const std::string folder = order.folder.string();
  GuardianOrder guardian;
  guardian.program = path.c_str();
  guardian.words = arguments.data();
  guardian.environment = environment.data();
  guardian.folder = folder.c_str();
  guardian.life = life.read.get();
  guardian.report = report.write.get();
  guardian.output = output.write.get();
  guardian.time_limit_ms = order.time_limit.count();
  guardian.grace_ms = static_cast<int>(order.grace.count());
  log_.emplace(std::move(output.read), order.log, order.log_bytes_max);
  guardian_ = ::fork();
  if (guardian_ < 0) ThrowErrno(path, "fork", errno);
  if (guardian_ == 0) {
    ::close(life.write.get());
    RunGuardian(guardian);
  }
  life_ = std::move(life.write);
  report_ = std::move(report.read);
}

Program::~Program() {
  life_.reset();
  Bury();
}

void Program::Bury() {
  if (guardian_ < 0) return;
  while (::waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {
  }
  guardian_ = -1;
  if (log_) log_->Finish();
}

std::optional<ProgramEnd> Program::Wait(std::chrono::milliseconds time) {
  if (end_) return end_;
  pollfd entry{report_.get(), POLLIN, 0};
  if (::poll(&entry, 1, static_cast<int>(time.count())) <= 0) return std::nullopt;
  ProgramEnd end;
  const ssize_t got = ::read(report_.get(), &end, sizeof end);
  if (got < 0 && errno == EINTR) return std::nullopt;
  end_ = got == static_cast<ssize_t>(sizeof end) ? end : ProgramEnd{};
  life_.reset();
  Bury();
  return end_;
}

}  // namespace evald::command
