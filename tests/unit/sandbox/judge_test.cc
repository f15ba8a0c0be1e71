#include "metrics/sandbox/judge.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/oom_kills.h"
#include "metrics/sandbox/shown_output.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::sandbox {
namespace {

ProgramReport Finished(const ProgramRequest& request) {
  ProgramReport report = {};
  report.cpu_us = 100'000;
  std::memcpy(report.record, request.nonce, kNonceBytes);
  return report;
}

ProgramRequest WithNonce() {
  ProgramRequest request = {};
  std::memset(request.nonce, 7, kNonceBytes);
  return request;
}

TEST(Judge, OnlyTheWholeNoncePasses) {
  const SandboxOptions options;
  const ProgramRequest request = WithNonce();
  ProgramReport report = Finished(request);
  EXPECT_TRUE(Judge(report, request, options).status == ProgramStatus::kPassed);
  report.record[kNonceBytes - 1] ^= 1;
  EXPECT_TRUE(Judge(report, request, options).status == ProgramStatus::kFailed);
  std::memset(report.record, 0, kNonceBytes);
  EXPECT_EQ(Judge(report, request, options).detail,
            "failed: ended with exit status 0 before the tests did");
}

TEST(Judge, CpuTimeGoesBeforeCompletion) {
  const SandboxOptions options;
  const ProgramRequest request = WithNonce();
  ProgramReport report = Finished(request);
  report.cpu_us = 3'000'000;
  const ProgramOutcome outcome = Judge(report, request, options);
  EXPECT_TRUE(outcome.status == ProgramStatus::kTimeout);
  EXPECT_DOUBLE_EQ(outcome.cpu_seconds, 3.0);
}

TEST(Judge, ASleeperHasItsVerdict) {
  ProgramReport report = {};
  report.wall_exceeded = 1;
  report.slept = 1;
  EXPECT_FALSE(NeedsSecondRun(report, SandboxOptions()));
  const ProgramOutcome outcome = Judge(report, WithNonce(), SandboxOptions());
  EXPECT_TRUE(outcome.status == ProgramStatus::kTimeout);
  EXPECT_EQ(outcome.detail, "timed out: 15 s on the clock");
  report.slept = 0;
  EXPECT_EQ(Judge(report, WithNonce(), SandboxOptions()).detail, outcome.detail)
      << "nothing tells of the load";
}

TEST(Judge, TheClockAloneAsksForASecondRun) {
  const SandboxOptions options;
  ProgramReport report = {};
  EXPECT_FALSE(NeedsSecondRun(report, options));
  report.wall_exceeded = 1;
  EXPECT_TRUE(NeedsSecondRun(report, options));
  report.cpu_us = 3'000'000;
  EXPECT_FALSE(NeedsSecondRun(report, options)) << "CPU time does not depend on the load";
}

/// The kernel's OOM killer and a program that kills itself look the same.
TEST(Judge, AKillOfUnknownOriginAsksForASecondRun) {
  const SandboxOptions options;
  ProgramReport report = {};
  report.wait_status = SIGKILL;
  EXPECT_TRUE(NeedsSecondRun(report, options));
  report.cpu_us = 3'000'000;
  EXPECT_FALSE(NeedsSecondRun(report, options)) << "the sandbox has sent it";
  report.cpu_us = 0;
  report.wall_exceeded = 1;
  report.slept = 1;
  EXPECT_FALSE(NeedsSecondRun(report, options)) << "the sandbox has sent it";
  report = {};
  report.wait_status = SIGSEGV;
  EXPECT_FALSE(NeedsSecondRun(report, options));
}

TEST(Judge, AKillInTheSecondRunIsNoAnswerIfMemoryRanOut) {
  const SandboxOptions options;
  ProgramReport report = {};
  report.wait_status = SIGKILL;
  EXPECT_NO_THROW(CheckSecondRun(report, options, 0)) << "the program killed itself";
  const Error error = Caught([&] { CheckSecondRun(report, options, 2); });
  EXPECT_TRUE(error.kind() == ErrorKind::kInfrastructure);
  EXPECT_NE(std::string(error.what()).find("OOM killer"), std::string::npos) << error.what();
  report.wait_status = 1 << 8;
  EXPECT_NO_THROW(CheckSecondRun(report, options, 2)) << "another process was killed";
}

TEST(OomKills, AreTheHostsAndTheCgroups) {
  const TemporaryFolder folder;
  std::ofstream(folder / "vmstat") << "nr_free_pages 12\noom_kill 3\nswap_ra 4\n";
  std::ofstream(folder / "cgroup") << "4:memory:/x\n0::/a/b\n";
  std::filesystem::create_directories(folder / "a" / "b");
  EXPECT_EQ(CountOomKills(folder / "vmstat", folder / "cgroup", folder.path()), 3u);
  std::ofstream(folder / "a" / "b" / "memory.events") << "low 0\noom 9\noom_kill 2\n";
  EXPECT_EQ(CountOomKills(folder / "vmstat", folder / "cgroup", folder.path()), 5u);
  EXPECT_EQ(CountOomKills(folder / "none", folder / "none", folder / "none"), 0u);
}

TEST(Judge, SignalsAreNamed) {
  const ProgramRequest request = WithNonce();
  ProgramReport report = {};
  report.wait_status = 11;
  const ProgramOutcome outcome = Judge(report, request, SandboxOptions());
  EXPECT_TRUE(outcome.status == ProgramStatus::kKilled);
  EXPECT_NE(outcome.detail.find("signal 11"), std::string::npos);
}

TEST(Judge, DetailIsBoundedUtf8WhateverTheProgramWrote) {
  const ProgramRequest request = WithNonce();
  ProgramReport report = {};
  report.wait_status = 1 << 8;
  report.detail_bytes = 0xffffffff;
  std::memset(report.detail, 0xff, sizeof(report.detail));
  const std::string detail = Judge(report, request, SandboxOptions()).detail;
  EXPECT_LE(detail.size(), kDetailBytes);
  EXPECT_TRUE(IsUtf8(detail));
}

TEST(Judge, OutputIsBoundedUtf8WhateverTheProgramWrote) {
  const ProgramRequest request = WithNonce();
  ProgramReport report = {};
  report.wait_status = 1 << 8;
  report.detail_bytes = 1;
  report.output_bytes = UINT64_MAX;
  std::memset(report.output, 0xff, sizeof(report.output));
  const std::string output = Judge(report, request, SandboxOptions()).output;
  EXPECT_LE(output.size(), 6 * kOutputBytes);
  EXPECT_TRUE(IsUtf8(output));
}

TEST(ShownOutput, HasTheBeginningAndTheEndWithoutHalfCharacters) {
  EXPECT_EQ(ShownOutput("a\tb\n\x1b[2J"), "a\tb\n\\x1b[2J");
  std::string text = "x";
  while (text.size() < 3000) text += "\xc3\xa9";  // two bytes each
  EXPECT_EQ(text.size(), 3001u);
  const std::string shown = ShownOutput(text);
  EXPECT_TRUE(shown.starts_with("x\xc3\xa9"));
  EXPECT_NE(shown.find("\n… 954 bytes more …\n"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("\xef\xbf\xbd"), std::string::npos) << "a character is cut";
  EXPECT_EQ(ShownOutput(std::string(2048, 'y')), std::string(2048, 'y'));
}

/// The text goes into files, terminals and pages. Characters that steer those are spelled out.
TEST(Judge, DetailSteersNoTerminal) {
  const ProgramRequest request = WithNonce();
  ProgramReport report = {};
  report.wait_status = 1 << 8;
  const std::string said =
      "failed: \xc2\x9b"
      "31m \xe2\x80\xae \xe2\x80\xa8 \x1b[2J \xc3\xa9\n";
  report.detail_bytes = static_cast<uint32_t>(said.size());
  std::memcpy(report.detail, said.data(), said.size());
  const std::string detail = Judge(report, request, SandboxOptions()).detail;
  for (const char* steering : {"\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\xa8", "\x1b"}) {
    EXPECT_EQ(detail.find(steering), std::string::npos) << detail;
  }
  EXPECT_NE(detail.find("\xc3\xa9\n"), std::string::npos) << detail;
}

}  // namespace
}  // namespace evald::sandbox
