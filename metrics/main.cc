#include <signal.h>

#include <CLI/CLI.hpp>

#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "metrics/process.h"
#include "metrics/sandbox_options.h"
#include "protocol/parent_death.h"

int main(int argc, char** argv) {
  evald::MetricProcessOptions options;
  std::string sandbox = "{}";
  std::string log_level = "info";
  pid_t parent = 0;
  CLI::App app("evald-metric: scores generations for an evald agent, which starts it");
  app.add_option("--socket", options.socket, "the agent's Unix socket")->required();
  app.add_option("--id", options.id, "what the agent calls this process")->required();
  app.add_option("--sandbox", sandbox, "limits on code that is run, as JSON");
  app.add_option("--parent", parent, "process id of the agent, whose end ends this process");
  app.add_option("--log-level", log_level, "trace, debug, info, warn, error or off");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(evald::ExitStatus::kUsage);
  }
  try {
    evald::SetUpLog("evald-metric " + options.id, log_level);
    evald::protocol::DieWithParent(SIGKILL, parent);
    ::signal(SIGPIPE, SIG_IGN);
    options.sandbox =
        evald::SandboxOptionsFromJson(evald::ParseJson(sandbox, "--sandbox"), "--sandbox");
    return evald::RunMetricProcess(options);
  } catch (const evald::Error& e) {
    evald::log::Error("{}", e.what());
    return static_cast<int>(evald::ExitStatusFor(e.kind()));
  }
}
