#include "metrics/sandbox/interpreter.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/embedded.h"

namespace evald::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kAskTimeoutUs = 30'000'000;
constexpr size_t kAnswerBytesMax = 1 << 20;

Error Unusable(const std::string& python, const std::string& why) {
  return Error(ErrorKind::kInfrastructure, "the sandbox's interpreter " + python + " " + why,
               "set metrics.sandbox.python to a CPython of at least 3.8 with its standard library "
               "(Debian: apt-get install python3)");
}

/// Reads until the end of the stream, the deadline, or the size limit.
std::string ReadUntilEnd(int fd, int64_t deadline_us) {
  std::string text;
  char chunk[4096];
  while (text.size() < kAnswerBytesMax) {
    const int64_t left_us = deadline_us - MonotonicMicros();
    pollfd watched = {fd, POLLIN, 0};
    if (left_us <= 0 || poll(&watched, 1, static_cast<int>(left_us / 1000) + 1) == 0) break;
    const ssize_t got = read(fd, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk, static_cast<size_t>(got));
  }
  return text;
}

/// Runs `arguments` with a fixed small environment. Returns its output and errors together.
std::string Ask(const std::string& python, const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) ThrowErrno("pipe", "opening", errno);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 2);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::string hash_seed = "PYTHONHASHSEED=0";
  std::string path = "PATH=/usr/local/bin:/usr/bin:/bin";
  if (const char* own = getenv("PATH")) path = std::string("PATH=") + own;
  char* environment[] = {hash_seed.data(), path.data(), nullptr};
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw Unusable(python, std::string("cannot be run: ") + std::strerror(failed));
  writer.reset();
  std::string answer = ReadUntilEnd(reader.get(), MonotonicMicros() + kAskTimeoutUs);
  kill(pid, SIGKILL);  // it has ended, or it will not
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return answer;
}

Json AskJson(const std::string& python, const std::string& executable, const std::string& script) {
  const std::string answer = Ask(python, {executable, "-S", "-s", "-B", "-c", script});
  try {
    return ParseJson(Trim(answer), "answer");
  } catch (const Error&) {
    throw Unusable(python, "gave no answer about itself but: " + Shortened(answer, 300));
  }
}

/// The interpreter behind links, shims and virtual environments, and the environment's packages.
Json AskIdentity(const std::string& python) {
  return AskJson(python, python,
                 "import sys, os, json\n"
                 "base = getattr(sys, '_base_executable', None) or sys.executable\n"
                 "home = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))\n"
                 "venv = os.path.isfile(os.path.join(home, 'pyvenv.cfg'))\n"
                 "packages = os.path.join(home, 'lib', 'python%d.%d' % sys.version_info[:2],\n"
                 "                        'site-packages')\n"
                 "import site\n"
                 "shared = [] if venv else [os.path.realpath(folder)\n"
                 "                          for folder in site.getsitepackages()]\n"
                 "print(json.dumps({'base': os.path.realpath(base),\n"
                 "    'packages': [os.path.realpath(packages)] if venv else [],\n"
                 "    'site_packages': [s for s in shared if os.path.isdir(s)]}))\n");
}

Interpreter Discover(const std::string& python) {
  const Json identity = AskIdentity(python);
  const std::string where = "the answer of " + python;
  const std::string base = Field<std::string>(identity, "base", where);
  const Json answer = AskJson(python, base, std::string(DiscoverScript()));
  const std::string implementation = Field<std::string>(answer, "implementation", where);
  if (implementation != "cpython") throw Unusable(python, "is " + implementation + ", not CPython");
  Interpreter found;
  found.executable = Field<std::string>(answer, "executable", where);
  found.loader = Field<std::string>(answer, "loader", where);
  found.version = Field<std::string>(answer, "version", where);
  found.folders = Field<std::vector<std::string>>(answer, "folders", where);
  found.packages = Field<std::vector<std::string>>(identity, "packages", where);
  found.site_packages = Field<std::vector<std::string>>(identity, "site_packages", where);
  std::set<std::string> folders;
  for (const auto& library : Field<std::vector<std::string>>(answer, "libraries", where)) {
    std::error_code ignored;
    const fs::path real = fs::canonical(library, ignored);
    if (!ignored) folders.insert(real.parent_path());
  }
  found.libraries.assign(folders.begin(), folders.end());
  return found;
}

}  // namespace

Json InstalledPackages(const Interpreter& interpreter) {
  Json folders = interpreter.packages;
  for (const std::string& folder : interpreter.site_packages) folders.push_back(folder);
  return AskJson(
      interpreter.executable, interpreter.executable,
      "import json\nfrom importlib import metadata\n"
      "found = metadata.distributions(path=" +
          folders.dump() +  // a list of texts is the same in Python
          ")\n"
          "print(json.dumps({str(one.metadata['Name']): str(one.version) for one in found},\n"
          "                 sort_keys=True))\n");
}

const Interpreter& FindInterpreter(const std::string& python) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string, std::unique_ptr<Interpreter>>();
  const std::lock_guard lock(mutex);
  auto& entry = (*known)[python];
  if (!entry) entry = std::make_unique<Interpreter>(Discover(python));
  return *entry;
}

}  // namespace evald::sandbox
