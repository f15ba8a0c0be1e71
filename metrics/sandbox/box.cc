#include "metrics/sandbox/box.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "metrics/sandbox/filter.h"
#include "metrics/sandbox/interpreter.h"

namespace evald::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSaidBytes = 64 << 10;
constexpr uint64_t kOpenFiles = 256;
constexpr uint64_t kTasks = 64;  // threads: numerical libraries start some
constexpr int kEndGraceMs = 200;

std::string MakeScratch() {
  std::string name = (fs::temp_directory_path() / "evald-task-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) ThrowErrno(name, "making", errno);
  return name;
}

std::vector<std::string> Arguments(const BoxOptions& options, const Interpreter& interpreter) {
  Json packages = interpreter.packages;
  for (const std::string& folder : interpreter.site_packages) packages.push_back(folder);
  std::vector<std::string> arguments = {interpreter.executable, "-S",           "-s", "-B", "-c",
                                        options.script,         packages.dump()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return arguments;
}

/// Settings that make functions give the same each time, and keep libraries from the network.
std::vector<std::string> Environment(const std::string& folder) {
  return {"PYTHONHASHSEED=0",       "PYTHONUTF8=1",
          "LANG=C.UTF-8",           "TZ=UTC",
          "HOME=" + folder,         "TMPDIR=" + folder,
          "HF_HUB_OFFLINE=1",       "HF_DATASETS_OFFLINE=1",
          "TRANSFORMERS_OFFLINE=1", "OMP_NUM_THREADS=1",
          "OPENBLAS_NUM_THREADS=1", "MALLOC_ARENA_MAX=1"};
}

RootPlan RootOf(const Interpreter& interpreter, const BoxOptions& options, bool own_ids) {
  Interpreter all = interpreter;
  all.packages.insert(all.packages.end(), interpreter.site_packages.begin(),
                      interpreter.site_packages.end());
  RootPlan root = PlanRoot(all);
  root.tmp_bytes = options.tmpfs_bytes;
  root.tmp_owner = own_ids ? kProgramUid : 0;
  return root;
}

}  // namespace

Box::Box(const BoxOptions& options) {
  const Interpreter& interpreter = FindInterpreter(options.python);
  version_ = interpreter.version;
  ContainPlan plan;
  plan.namespaces = !options.unsafe;
  if (options.unsafe) scratch_ = MakeScratch();
  plan.arguments = Arguments(options, interpreter);
  plan.environment = Environment(options.unsafe ? scratch_ : "/tmp");
  plan.restrictions.emplace();
  plan.restrictions->limits = {options.memory_bytes, options.tmpfs_bytes, kOpenFiles, 0};
  if (plan.namespaces) {
    plan.user = ChooseUser();
    plan.root = RootOf(interpreter, options, plan.user.own_ids);
    plan.restrictions->limits.tasks = kTasks + (plan.user.own_ids ? 0 : 2);
    FilterOptions allowed;
    allowed.machine_code = true;
    allowed.interpreter = true;
    plan.restrictions->filter = BuildFilter(allowed);
  }
  process_.emplace(plan);
  for (const int fd : {process_->control(), process_->errors()}) fcntl(fd, F_SETFL, O_NONBLOCK);
}

Box::~Box() {
  if (process_) process_->Stop(kEndGraceMs);
  std::error_code ignored;
  if (!scratch_.empty()) fs::remove_all(scratch_, ignored);
}

void Box::ReadErrors() {
  char piece[16 << 10];
  for (;;) {
    const ssize_t got = read(process_->errors(), piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    said_.append(piece, static_cast<size_t>(got));
    if (said_.size() > 2 * kSaidBytes) said_.erase(0, said_.size() - kSaidBytes);
  }
}

/// Takes what has come. False at the end of the stream.
bool Box::ReadControl() {
  char piece[64 << 10];
  const ssize_t got = recv(process_->control(), piece, sizeof(piece), MSG_DONTWAIT);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  received_.append(piece, static_cast<size_t>(got));
  return got > 0;
}

void Box::Send(std::string_view line) {
  std::string rest(line);
  rest += '\n';
  size_t done = 0;
  while (done < rest.size()) {
    pollfd ready[2] = {{process_->control(), POLLOUT, 0}, {process_->errors(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0) continue;
    if (ready[1].revents != 0) ReadErrors();
    if (ready[0].revents == 0) continue;
    const ssize_t sent = send(process_->control(), rest.data() + done, rest.size() - done,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) ThrowEnded();
    if (sent > 0) done += static_cast<size_t>(sent);
  }
}

std::string Box::Receive(size_t bytes_max) {
  for (size_t seen = 0;;) {
    const size_t end = received_.find('\n', seen);
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    seen = received_.size();
    if (seen > bytes_max) {
      throw Error(
          ErrorKind::kInput,
          "the process of the task's code gives an answer of more than " + HumanBytes(bytes_max),
          "let the function give smaller values");
    }
    pollfd ready[2] = {{process_->control(), POLLIN, 0}, {process_->errors(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0) continue;
    if ((ready[1].revents & POLLIN) != 0) ReadErrors();
    if (ready[0].revents != 0 && !ReadControl()) ThrowEnded();
  }
}

std::string Box::TakeSaid() {
  ReadErrors();
  std::string said = std::move(said_);
  said_.clear();
  if (said.size() > kSaidBytes) said.erase(0, said.size() - kSaidBytes);
  return ReplaceInvalidUtf8(said);
}

void Box::ThrowEnded() {
  const int status = process_->Stop(kEndGraceMs);
  std::string why = "ended";
  if (status >= 0 && WIFSIGNALED(status)) {
    why = std::string("was ended by signal ") + strsignal(WTERMSIG(status));
  } else if (status >= 0 && WIFEXITED(status)) {
    why = "ended with status " + std::to_string(WEXITSTATUS(status));
  }
  const std::string said(Trim(TakeSaid()));
  const std::string last = said.substr(said.rfind('\n') + 1);
  throw Error(ErrorKind::kInput,
              "the process of the task's code " + why + (last.empty() ? "" : ": " + last),
              "see the task's Python file; 'limits.memory' sets how much memory it may take");
}

}  // namespace evald::sandbox
