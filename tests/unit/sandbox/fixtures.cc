#include "tests/unit/sandbox/fixtures.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "evald/error.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::sandbox_test {

namespace fs = std::filesystem;

SandboxOptions ShortLimits(uint64_t marker) {
  SandboxOptions options;
  options.cpu_seconds = 1;
  options.wall_seconds = 3;
  options.memory_bytes = 256ull << 20;
  options.output_bytes = marker;
  return options;
}

std::vector<int> ProcessesOf(uint64_t marker) {
  const std::string wanted = '\0' + std::to_string(marker) + '\0';
  std::vector<int> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::stringstream text;  // empty, without an exception, if the process has just ended
    text << std::ifstream(entry.path() / "cmdline", std::ios::binary).rdbuf();
    const std::string line = text.str();
    if (line.find(wanted) != std::string::npos) pids.push_back(std::stoi(name));
  }
  return pids;
}

size_t AwaitProcesses(uint64_t marker, size_t count) {
  size_t found = 0;
  for (int i = 0; i < 1200; ++i) {
    found = ProcessesOf(marker).size();
    if (found == count) break;
    usleep(50'000);
  }
  return found;
}

namespace {

/// A folder of this process alone, in which the runners of this process make their folders, too.
const fs::path& OwnTmp() {
  static const TemporaryFolder folder;
  setenv("TMPDIR", folder.path().c_str(), 1);
  return folder.path();
}

}  // namespace

std::string HostTraces() {
  std::string traces;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const bool of_a_test = line.find("/evald-test-") != std::string::npos;
    if (!of_a_test || line.find(OwnTmp().string()) != std::string::npos) traces += line + "\n";
  }
  for (const auto& entry : fs::directory_iterator(OwnTmp())) traces += entry.path().string() + "\n";
  return traces;
}

ProgramOutcome RunOnce(const SandboxOptions& options, const std::string& source) {
  return MakeCodeRunner(options)->Run(source);
}

int InChild(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      fprintf(stderr, "in the child: %s\n", error.what());
    }
    _exit(status);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int InUserNamespace(const std::string& id_map, const std::function<int()>& body) {
  int made[2];
  int mapped[2];
  if (pipe(made) != 0 || pipe(mapped) != 0) return 98;
  std::thread mapper([&] {
    pid_t child = 0;
    if (read(made[0], &child, sizeof(child)) == sizeof(child) && child > 0) {
      const std::string folder = "/proc/" + std::to_string(child);
      std::ofstream(folder + "/uid_map") << id_map;
      std::ofstream(folder + "/gid_map") << id_map;
    }
    if (write(mapped[1], "g", 1) != 1) perror("write");
  });
  const int status = InChild([&] {
    const pid_t self = unshare(CLONE_NEWUSER) == 0 ? getpid() : -1;
    char go = 0;
    if (write(made[1], &self, sizeof(self)) != sizeof(self) || read(mapped[0], &go, 1) != 1) {
      return 98;
    }
    if (self < 0 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) return 98;
    return body();
  });
  mapper.join();
  for (const int fd : {made[0], made[1], mapped[0], mapped[1]}) close(fd);
  return status;
}

fs::path DataFolder() {
  if (const char* folder = std::getenv("EVALD_DATA_DIR")) return folder;
  return fs::path(EVALD_SOURCE_DIR) / ".." / "shared" / "data";
}

std::string ReadGzip(const fs::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  char chunk[65536];
  int got = 0;
  while (file != nullptr && (got = gzread(file, chunk, sizeof(chunk))) > 0) {
    text.append(chunk, static_cast<size_t>(got));
  }
  if (file != nullptr) gzclose(file);
  return text;
}

void Isolated::SetUp() {
  try {
    runner_ = MakeCodeRunner(options_);
  } catch (const Error& error) {
    GTEST_SKIP() << "this host cannot isolate: " << error.what();
  }
}

}  // namespace evald::sandbox_test
