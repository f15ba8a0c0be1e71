#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "metrics/sandbox/sandbox.h"

namespace evald::sandbox_test {

/// Short limits, and an unusual output size by which the processes of these options are found.
SandboxOptions ShortLimits(uint64_t marker = 65531);

/// Pids of the processes (zygotes and programs) whose command line contains the marker.
std::vector<int> ProcessesOf(uint64_t marker);

/// Waits up to a minute until ProcessesOf(marker) has `count` processes. Returns the last count.
size_t AwaitProcesses(uint64_t marker, size_t count);

/// Traces that a sandbox could leave on the host: mounts of this namespace, and folders for
/// temporary files. From the first call on, this process has a folder for them of its own (TMPDIR);
/// mounts of other tests do not count.
std::string HostTraces();

/// Runs one program in a sandbox of its own.
ProgramOutcome RunOnce(const SandboxOptions& options, const std::string& source);

/// Calls `body` in a child process. Returns its exit status, or 128 + the signal.
int InChild(const std::function<int()>& body);

/// Like InChild, as root of a new user namespace with this uid_map and gid_map. Only for root.
int InUserNamespace(const std::string& id_map, const std::function<int()>& body);

/// $EVALD_DATA_DIR or ../shared/data, if it exists.
std::filesystem::path DataFolder();

std::string ReadGzip(const std::filesystem::path& path);

/// Skips the test if the host cannot isolate (docs/sandbox.md), and says why.
class Isolated : public ::testing::Test {
 protected:
  void SetUp() override;

  ProgramOutcome Run(const std::string& source) { return runner_->Run(source); }
  void ExpectPasses(const std::string& source) {
    const ProgramOutcome outcome = Run(source);
    EXPECT_EQ(static_cast<int>(outcome.status), static_cast<int>(ProgramStatus::kPassed))
        << outcome.detail << "\n"
        << source;
  }
  void ExpectStatus(ProgramStatus status, const std::string& source,
                    const std::string& detail = "") {
    const ProgramOutcome outcome = Run(source);
    EXPECT_EQ(static_cast<int>(outcome.status), static_cast<int>(status)) << outcome.detail << "\n"
                                                                          << source;
    EXPECT_NE(outcome.detail.find(detail), std::string::npos) << outcome.detail;
  }

  SandboxOptions options_ = ShortLimits();
  std::unique_ptr<CodeRunner> runner_;
};

/// Like Isolated. Programs may also fork and send signals: the second line of defence.
class IsolatedWithProcesses : public Isolated {
 protected:
  IsolatedWithProcesses() {
    options_ = ShortLimits(65533);
    options_.allow_processes = true;
  }
};

}  // namespace evald::sandbox_test
