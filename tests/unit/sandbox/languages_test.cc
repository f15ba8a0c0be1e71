// Programs in every language that a sandbox runs: right ones, wrong ones, and attacks. A language
// whose compiler is missing is skipped.

#include <gmock/gmock.h>

#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/language.h"
#include "tests/unit/sandbox/fixtures.h"
#include "tests/unit/sandbox/language_programs.h"
#include "tests/unit/support/caught.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;
using sandbox::FindLanguage;
using ::testing::HasSubstr;

constexpr uint64_t kOutput = 1 << 20;

class Programs : public Isolated {
 protected:
  Programs() {
    options_.cpu_seconds = 2;
    options_.wall_seconds = 60;  // the CPU time decides, however busy the machine is
  }

  void SetUp() override {
    Isolated::SetUp();
    if (!IsSkipped()) HostTracesAtStart();
  }

  void HostTracesAtStart() { traces_ = HostTraces(); }
  void TearDown() override {
    if (runner_ != nullptr) {
      EXPECT_EQ(HostTraces(), traces_);
    }
  }

  /// Builds and runs a program once.
  BuiltProgram::RunResult RunFiles(const std::string& language, std::vector<SourceFile> files,
                                   const std::string& input = "", bool ends_at_output = false) {
    ProgramOutcome built;
    const auto program = runner_->Build({language, std::move(files), 0}, &built);
    if (program == nullptr) return {built, ""};
    EXPECT_EQ(built.detail, "passed");
    return program->Run(input, kOutput, ends_at_output);
  }
  BuiltProgram::RunResult RunIn(const std::string& language, const std::string& text,
                                const std::string& input = "", bool ends_at_output = false) {
    return RunFiles(language, {{"", text}}, input, ends_at_output);
  }

  std::string traces_;
};

void ExpectPassed(const BuiltProgram::RunResult& result) {
  EXPECT_EQ(static_cast<int>(result.outcome.status), static_cast<int>(kPassed))
      << result.outcome.detail;
}

class EachLanguage : public Programs, public ::testing::WithParamInterface<LanguagePrograms> {
 protected:
  void SetUp() override {
    const std::string missing = sandbox::MissingTool(*FindLanguage(GetParam().language));
    if (!missing.empty()) GTEST_SKIP() << missing << " is not installed";
    Programs::SetUp();
  }
  const std::string& language() const { return GetParam().language; }
};

TEST_P(EachLanguage, ARightProgramReadsAndWrites) {
  ProgramOutcome built;
  const auto program = runner_->Build({language(), {{"", GetParam().sum}}, 0}, &built);
  ASSERT_NE(program, nullptr) << built.detail;
  const auto first = program->Run("1 2\n3\n", kOutput, true);
  ExpectPassed(first);
  EXPECT_EQ(Trim(first.output), "6");
  const auto second = program->Run("-5 5 41\n", kOutput, true);
  ExpectPassed(second);
  EXPECT_EQ(Trim(second.output), "41");
}

TEST_P(EachLanguage, ItsTestsDecideByTheStatus) {
  ExpectPassed(RunIn(language(), GetParam().asserts));
  const auto wrong = RunIn(language(), GetParam().fails);
  EXPECT_NE(static_cast<int>(wrong.outcome.status), static_cast<int>(kPassed));
  EXPECT_NE(static_cast<int>(wrong.outcome.status), static_cast<int>(kTimeout));
  EXPECT_THAT(wrong.outcome.detail, ::testing::Not(HasSubstr("does not compile")));
}

TEST_P(EachLanguage, AnEndlessLoopEnds) {
  const auto result = RunIn(language(), GetParam().loop);
  EXPECT_EQ(static_cast<int>(result.outcome.status), static_cast<int>(kTimeout))
      << result.outcome.detail;
  EXPECT_THAT(result.outcome.detail, HasSubstr("s of CPU time"));
}

TEST_P(EachLanguage, MemoryIsBounded) {
  const auto result = RunIn(language(), GetParam().memory);
  EXPECT_TRUE(result.outcome.status == kFailed || result.outcome.status == kKilled)
      << result.outcome.detail;
  EXPECT_THAT(result.outcome.detail, ::testing::Not(HasSubstr("does not compile")));
}

TEST_P(EachLanguage, AttacksOnTheHostAreRefused) {
  const auto result = RunIn(language(), GetParam().attacks);
  ExpectPassed(result);
  EXPECT_EQ(result.output, "");
}

TEST_P(EachLanguage, AFloodOfOutputEnds) {
  const auto result = RunIn(language(), GetParam().flood, "", true);
  EXPECT_EQ(static_cast<int>(result.outcome.status), static_cast<int>(kFailed))
      << result.outcome.detail;
  EXPECT_THAT(result.outcome.detail, HasSubstr("more output than 1.0 MiB"));
  EXPECT_EQ(result.output.size(), kOutput);
  const auto dropped = RunIn(language(), GetParam().flood);
  EXPECT_EQ(static_cast<int>(dropped.outcome.status), static_cast<int>(kTimeout))
      << dropped.outcome.detail;
}

TEST_P(EachLanguage, ABrokenProgramFails) {
  const std::string begin = language() == "php" ? "<?php " : "";
  const auto result = RunIn(language(), begin + "this is ( no program {{{ \" in any of them\n");
  EXPECT_EQ(static_cast<int>(result.outcome.status), static_cast<int>(kFailed))
      << result.outcome.detail;
  const bool compiled = !FindLanguage(language())->build.empty();
  if (compiled) {
    EXPECT_THAT(result.outcome.detail, HasSubstr("failed: does not compile"));
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, EachLanguage, ::testing::ValuesIn(AllLanguagePrograms()),
                         [](const auto& info) { return info.param.language; });

TEST(LanguageTable, NamesAreKnownByTheirAliases) {
  EXPECT_EQ(FindLanguage("C++")->name, "cpp");
  EXPECT_EQ(FindLanguage("go_test.go")->name, "go");
  EXPECT_EQ(FindLanguage("rs")->name, "rust");
  EXPECT_EQ(FindLanguage("cobol"), nullptr);
  EXPECT_EQ(sandbox::LanguageNames().size(), 13u);
  EXPECT_EQ(sandbox::InstallLine(*FindLanguage("cpp")), "apt-get install g++");
}

TEST_F(Programs, UnknownLanguagesAndNamesAreErrorsOfTheTask) {
  ProgramOutcome built;
  EXPECT_THAT(Caught([&] { runner_->Build({"pyton", {{"", ""}}, 0}, &built); }).what(),
              HasSubstr("did you mean 'python'"));
  for (const char* name : {"../x.py", "/x.py", "a//b", "a/./b", "a/../b"}) {
    EXPECT_THAT(Caught([&] { runner_->Build({"python", {{name, ""}}, 0}, &built); }).what(),
                HasSubstr("expected a relative path without '..'"))
        << name;
  }
  EXPECT_THAT(Caught([&] { runner_->Build({"python", {{"a", ""}, {"a", ""}}, 0}, &built); }).what(),
              HasSubstr("two files 'a'"));
}

TEST_F(Programs, SeveralFilesAreOneProgram) {
  ExpectPassed(
      RunFiles("python", {{"main.py", "from lib.numbers import three\nassert three == 3\n"},
                          {"lib/numbers.py", "three = 3\n"},
                          {"data.txt", "x"}}));
  if (sandbox::MissingTool(*FindLanguage("cpp")).empty()) {
    ExpectPassed(
        RunFiles("cpp", {{"main.cpp", "#include \"three.h\"\nint main() { return three() - 3; }"},
                         {"three.h", "int three();"},
                         {"src/three.cpp", "#include \"../three.h\"\nint three() { return 3; }"}}));
  }
  if (sandbox::MissingTool(*FindLanguage("java")).empty()) {
    ExpectPassed(
        RunFiles("java", {{"Main.java",
                           "public class Main { public static void main(String[] a) "
                           "{ if (Three.value() != 3) System.exit(1); } }"},
                          {"Three.java", "class Three { static int value() { return 3; } }"}}));
  }
}

TEST_F(Programs, NothingIsLeftForTheNextProgram) {
  ExpectPassed(RunIn("bash", "echo x > left; (sleep 100 &) ; exit 0\n"));
  ExpectPassed(RunIn("bash", "[ ! -e left ] && [ ! -e /tmp/program/left ]\n"));
}

TEST_F(Programs, AForkBombEnds) {
  const auto bomb = RunIn("bash", "bomb() { bomb | bomb & }\nbomb\nwhile :; do :; done\n");
  EXPECT_NE(static_cast<int>(bomb.outcome.status), static_cast<int>(kPassed));
  ExpectPassed(RunIn("bash", "exit 0\n"));
}

TEST_F(Programs, OrphansCountAndEnd) {
  const auto result = RunIn("bash", "for i in 1 2 3; do (while :; do :; done) & done\nsleep 50\n");
  EXPECT_EQ(static_cast<int>(result.outcome.status), static_cast<int>(kTimeout))
      << result.outcome.detail;
  EXPECT_THAT(result.outcome.detail, HasSubstr("2 s of CPU time"));
}

TEST_F(Programs, SleepersEndByTheClock) {
  options_.wall_seconds = 0.5;
  runner_ = MakeCodeRunner(options_);
  const auto result = RunIn("python", "import time\ntime.sleep(100)\n");
  EXPECT_EQ(result.outcome.detail, "timed out: 0.5 s on the clock");
}

TEST_F(Programs, TheProgramCannotReachTheKeeper) {
  ExpectPassed(RunIn("python",
                     "import os, signal\n"
                     "for pid in (1, os.getppid(), -1):\n"
                     "  try: os.kill(pid, signal.SIGKILL); raise SystemExit(1)\n"
                     "  except PermissionError: pass\n"
                     "for path in ('/proc/1/mem', '/proc/1/environ', '/proc/1/fd/3'):\n"
                     "  try: open(path, 'rb').read(1); raise SystemExit(2)\n"
                     "  except OSError: pass\n"
                     "for fd in range(3, 200):\n"
                     "  try: os.fstat(fd); raise SystemExit(3)\n"
                     "  except OSError: pass\n"));
}

TEST_F(Programs, DisksAreBounded) {
  const auto result = RunIn("python",
                            "total = 0\nwith open('big', 'wb') as f:\n"
                            "  while total < 10 << 30: total += f.write(b'x' * (1 << 20))\n");
  EXPECT_TRUE(result.outcome.status == kFailed || result.outcome.status == kKilled)
      << result.outcome.detail;
}

TEST(WithoutIsolation, ProgramsRunAndLeaveNothing) {
  const std::string before = HostTraces();
  SandboxOptions options = ShortLimits();
  options.unsafe = true;
  options.wall_seconds = 60;
  const auto runner = MakeCodeRunner(options);
  for (const LanguagePrograms& programs : AllLanguagePrograms()) {
    if (programs.language != "python" && programs.language != "bash") continue;
    ProgramOutcome built;
    const auto program = runner->Build({programs.language, {{"", programs.sum}}, 0}, &built);
    ASSERT_NE(program, nullptr) << built.detail;
    const auto result = program->Run("1 2\n", kOutput, true);
    ExpectPassed(result);
    EXPECT_EQ(Trim(result.output), "3");
    const auto loop = runner->Build({programs.language, {{"", programs.loop}}, 0}, &built);
    EXPECT_EQ(loop->Run("", kOutput, true).outcome.detail, "timed out: 1 s of CPU time");
  }
  EXPECT_EQ(HostTraces(), before);
}

class Compilers : public Programs {
 protected:
  void SetUp() override {
    if (!sandbox::MissingTool(*FindLanguage("c")).empty()) GTEST_SKIP() << "gcc is not installed";
    Programs::SetUp();
  }
};

TEST_F(Compilers, TheirOutputIsBounded) {
  const auto result = RunIn("c", "char big[10L << 30] = {1};\nint main(void) { return 0; }\n");
  EXPECT_NE(static_cast<int>(result.outcome.status), static_cast<int>(kPassed))
      << result.outcome.detail;
}

TEST_F(Compilers, TheirTimeAndMemoryAreBounded) {
  // 2^40 macro expansions
  std::string bomb = "#define A0 x\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = "A" + std::to_string(i - 1);
    bomb += "#define A" + std::to_string(i) + " " + before + " " + before + "\n";
  }
  const auto result = RunIn("c", bomb + "int A40;\nint main(void) { return 0; }\n");
  EXPECT_TRUE(result.outcome.status == kTimeout || result.outcome.status == kKilled ||
              result.outcome.status == kFailed)
      << result.outcome.detail;
  EXPECT_NE(result.outcome.detail, "passed");
}

TEST_F(Compilers, FilesOfTheHostAreNotIncluded) {
  for (const char* path : {"/etc/shadow", "/etc/passwd", "/root/.bashrc"}) {
    const auto result =
        RunIn("c", "#include \"" + std::string(path) + "\"\nint main(void) { return 0; }\n");
    EXPECT_THAT(result.outcome.detail, HasSubstr("No such file"));
  }
  const auto device = RunIn("c", "#include \"/dev/zero\"\nint main(void) { return 0; }\n");
  EXPECT_NE(device.outcome.detail, "passed");
}

}  // namespace
}  // namespace evald::sandbox_test
