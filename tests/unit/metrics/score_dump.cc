// Scores a suite's folder for the oracle: score_dump SUITE OUT [PYTHON].
#include <filesystem>

#include "base/log.h"
#include "evald/error.h"
#include "tests/unit/metrics/score_suite.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    evald::log::Error("usage: score_dump SUITE OUT [PYTHON]");
    return 2;
  }
  try {
    evald::SandboxOptions options;
    if (argc > 3) options.python = argv[3];
    options.cpu_seconds = 20;
    std::unique_ptr<evald::CodeRunner> runner;
    std::filesystem::create_directories(argv[2]);
    evald::test::ScoreSuite(evald::test::ReadSuite(argv[1]), argv[2], [&] {
      if (!runner) runner = evald::MakeCodeRunner(options);
      return runner.get();
    });
    return 0;
  } catch (const evald::Error& e) {
    evald::log::Error("{}", e.what());
    return 3;
  }
}
