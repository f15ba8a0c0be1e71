#include <signal.h>

#include <algorithm>

#include "base/command_line.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/memory_limits.h"
#include "evald/error.h"
#include "metrics/process.h"
#include "metrics/sandbox_options.h"
#include "protocol/parent_death.h"

int main(int argc, char** argv) {
  evald::MetricProcessOptions options;
  std::string sandbox = "{}";
  std::string task_code = "{}";
  std::string log_level = "info";
  pid_t parent = 0;
  evald::CommandLine app("evald-metric",
                         "evald-metric: scores generations for an evald agent, which starts it");
  app.AddOption("--socket", &options.socket, "the agent's Unix socket").Required();
  app.AddOption("--id", &options.id, "what the agent calls this process").Required();
  app.AddOption("--sandbox", &sandbox, "limits on code that is run, as JSON");
  app.AddOption("--task-code", &task_code, "how Python code of task files is run, as JSON");
  app.AddOption("--judge-cache", &options.judge_cache, "a folder for the answers of judges");
  app.AddOption("--parent", &parent, "process id of the agent, whose end ends this process");
  app.AddOption("--log-level", &log_level, "trace, debug, info, warn, error or off");
  if (const int status = app.ParseOrStatus(argc, argv); status >= 0) return status;
  try {
    evald::SetUpLog("evald-metric " + options.id, log_level);
    evald::protocol::DieWithParent(SIGKILL, parent);
    ::signal(SIGPIPE, SIG_IGN);
    options.sandbox =
        evald::SandboxOptionsFromJson(evald::ParseJson(sandbox, "--sandbox"), "--sandbox");
    options.task_code =
        evald::TaskCodeFromJson(evald::ParseJson(task_code, "--task-code"), "--task-code");
    // Programs in the sandbox, which inherit the bound, have one of their own
    evald::LimitOwnMemory(std::max(evald::kMetricMemoryMax, options.sandbox.memory_bytes));
    evald::OfferToOomKiller(500);  // after the programs in the sandbox, which have 900
    return evald::RunMetricProcess(options);
  } catch (const evald::Error& e) {
    evald::log::Error("{}", e.what());
    return static_cast<int>(evald::ExitStatusFor(e.kind()));
  }
}
