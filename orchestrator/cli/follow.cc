#include "orchestrator/cli/follow.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>

#include "base/file.h"
#include "base/print.h"
#include "base/random_id.h"
#include "base/text.h"
#include "orchestrator/cli/run_text.h"
#include "orchestrator/cli/terminal.h"
#include "orchestrator/report/progress.h"

namespace evald::cli {
namespace {

std::atomic<bool> interrupted{false};

}  // namespace

CatchInterrupt::CatchInterrupt() {
  interrupted = false;
  old_ = std::signal(SIGINT, [](int) { interrupted = true; });
}
CatchInterrupt::~CatchInterrupt() { std::signal(SIGINT, old_); }
const std::atomic<bool>* CatchInterrupt::caught() const { return &interrupted; }

Json SubmissionBody(const FileSubmission& submission) {
  Json body = WantedBody(submission.wanted);
  body["priority"] = submission.priority;
  if (!submission.user.empty()) body["user"] = submission.user;
  return body;
}

Json SubmitFile(Client* client, const FileSubmission& submission) {
  const Json body = SubmissionBody(submission);
  return client->Post("/v1/runs", body, submission.key.empty() ? RandomId() : submission.key);
}

Json FollowRun(Client* client, const std::string& run, const Common& common, bool print_events) {
  const std::string path = RunPath(run);
  const bool lines = common.json && print_events;
  Json now = client->Get(path);
  if (IsOver(now.at("state").get<std::string>()) && !lines) return now;
  const CatchInterrupt catching;
  ProgressDisplay display(common.quiet);
  int64_t seen = 0;
  const auto visit = [&](const Json& event) {
    seen = event.at("sequence").get<int64_t>();
    if (lines) PrintJson(event);
    const std::string type = event.at("type").get<std::string>();
    const Json& data = event.at("data");
    if (type == "run.progress") display.Show(SnapshotOf(data));
    return type != "run.state" || !IsOver(data.value("state", ""));
  };
  // A resumed run has ended before: that end is not its last.
  do {
    client->Follow(fmt::format("{}/events?after={}", path, seen), visit, catching.caught());
    if (*catching.caught()) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("no longer watching {}, which goes on", run),
                  fmt::format("'evald watch {}' follows it, 'evald cancel {}' ends it", run, run));
    }
    now = client->Get(path);
  } while (!IsOver(now.at("state").get<std::string>()));
  display.Finish(SnapshotOf(now.at("progress")));
  return now;
}

ExitStatus PrintRun(const Json& run, const Common& common) {
  if (common.json) {
    PrintJson(run);
  } else {
    for (const std::string& line : RunDetails(run, {.columns = OutputColumns()}))
      Print("{}\n", line);
  }
  return StatusOfRun(run);
}

}  // namespace evald::cli
