#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/jsonl.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/print.h"
#include "base/problems.h"
#include "base/text.h"
#include "base/version.h"
#include "orchestrator/cli/cli.h"

namespace evald::cli {
namespace {

constexpr const char* kFooter = R"(
Examples:
  evald run eval.yaml                         evaluate a checkpoint
  evald fetch mmlu --data-dir data            get a task's dataset
  evald run eval.yaml --set workers.count=4   with one value changed
  evald run eval.yaml --resume                finish a run that was interrupted
  evald compare runs/step-1200 runs/step-600  document by document
  evald score --task gsm8k --generations answers.jsonl --data-dir data
  evald serve                                 a service: runs over REST, a page, metrics
  evald watch --checkpoints DIR eval.yaml     have it evaluate each new checkpoint
  evald endpoint checkpoints/step-1200        an OpenAI-compatible API of a checkpoint
  evald simulate --nodes 4                    what a schedule would bring
  evald doctor                                what this machine can do

Exit status: 0 done and every gate met; 1 a gate failed; 2 usage, configuration or input;
3 incomplete, for a cause outside the model; 4 inconclusive.)";

// Each problem has a line of its own.
void PrintError(const Common& common, const Error& error, ExitStatus status) {
  const std::vector<Error> each = EachOf(error);
  if (common.json) {
    Json document = {{"error", error.what()}, {"exit_status", static_cast<int>(status)}};
    for (const Error& one : each) document["errors"].push_back(one.what());
    PrintJson(document);
  }
  for (const Error& one : each) Print(stderr, "evald: error: {}\n", one.what());
}

ExitStatus Invoke(const Common& common, const Action& action) {
  try {
    return action();
  } catch (const Error& e) {
    const ExitStatus status = ExitStatusFor(e.kind());
    PrintError(common, e, status);
    return status;
  } catch (const std::exception& e) {
    const auto* const system = dynamic_cast<const std::system_error*>(&e);
    if (system != nullptr && system->code() == std::errc::broken_pipe)
      return ExitStatus::kIncomplete;  // `evald tasks | head`
    PrintError(common, Error(ErrorKind::kInternal, fmt::format("internal: {}", e.what())),
               ExitStatus::kIncomplete);
    return ExitStatus::kIncomplete;
  }
}

// Fails if standard output could not be written, for example to a full disk: a program that reads
// it must not take half for the whole.
ExitStatus AllWritten(ExitStatus status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  if (errno == EPIPE) return ExitStatus::kIncomplete;  // the reader has what it wanted
  Print(stderr, "evald: error: standard output: {}\n",
        errno != 0 ? std::strerror(errno) : "cannot be written");
  return ExitStatus::kIncomplete;
}

}  // namespace

int Main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  DenyOthersWriting();
  CommandLine app("evald", "evald evaluates large-language-model checkpoints.");
  app.Version(std::string("evald ") + kEvaldVersion);
  app.NeedsCommand();
  app.Footer(kFooter);
  Common common;
  common.binaries = std::filesystem::canonical("/proc/self/exe").parent_path();
  app.AddFlag("--json", &common.json,
              "Print one JSON document on standard output and nothing else there");
  app.AddFlag("-q,--quiet", &common.quiet, "No progress");
  app.AddOption("--log-level", &common.log_level, "trace, debug, info, warn, error or off")
      .OneOf({"trace", "debug", "info", "warn", "error", "off"});
  Action action;
  for (const auto add :
       {AddRun,      AddValidate,  AddCompare, AddScore,     AddServe,  AddAgent,
        AddSubmit,   AddStatus,    AddNodes,   AddWatch,     AddCancel, AddResults,
        AddLogs,     AddStage,     AddTasks,   AddFetch,     AddPriors, AddEndpoint,
        AddSimulate, AddTranslate, AddDoctor,  AddCompletion}) {
    add(app, &common, &action);
  }
  try {
    if (!app.Parse(argc, argv)) return static_cast<int>(AllWritten(ExitStatus::kDone));
  } catch (const Error& e) {
    // Parsing may have stopped before it came to the flag.
    common.json = std::count(argv, argv + argc, std::string_view("--json")) > 0;
    PrintError(common, e, ExitStatus::kUsage);
    return static_cast<int>(ExitStatus::kUsage);
  }
  SetUpLog("evald", common.log_level);
  return static_cast<int>(AllWritten(Invoke(common, action)));
}

}  // namespace evald::cli

int main(int argc, char** argv) { return evald::cli::Main(argc, argv); }
