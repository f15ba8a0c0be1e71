#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/staging/stager.h"

namespace evald::cli {
namespace {

struct StageFlags {
  std::string checkpoint;
  bool list = false;
  std::string drop;
  std::string root;
  std::string keep = "1TiB";
  bool verify = false;
};

std::filesystem::path RootOf(const StageFlags& flags) {
  return flags.root.empty() ? DefaultStagingRoot() : std::filesystem::absolute(flags.root);
}

ExitStatus List(const Common& common, const StageFlags& flags) {
  const std::vector<StagedInfo> staged = ListStaged(RootOf(flags));
  if (common.json) {
    Json list = Json::array();
    for (const StagedInfo& info : staged) list.push_back(ToJson(info));
    PrintJson(list);
    return ExitStatus::kDone;
  }
  if (staged.empty()) Print("Nothing is staged in {}.\n", RootOf(flags).string());
  for (const StagedInfo& info : staged) {
    Print("{}  {:>10}  {:<7} {}  {}\n", info.fingerprint, HumanBytes(info.bytes),
          info.leases > 0 ? "in use" : "kept",
          HumanSeconds(WallSeconds() - info.last_used) + " ago", info.source);
  }
  return ExitStatus::kDone;
}

ExitStatus Drop(const Common& common, const StageFlags& flags) {
  const DropResult result = DropStaged(RootOf(flags), flags.drop);
  if (common.json) {
    PrintJson({{"dropped", result.dropped}, {"in_use", result.leased}});
  } else {
    for (const std::string& fingerprint : result.dropped) Print("dropped {}\n", fingerprint);
    for (const std::string& fingerprint : result.leased)
      Print("in use, left alone: {}\n", fingerprint);
  }
  return result.leased.empty() ? ExitStatus::kDone : ExitStatus::kIncomplete;
}

ExitStatus Stage(const Common& common, const StageFlags& flags) {
  StagerOptions options;
  options.root = RootOf(flags);
  options.state = DefaultStateDir();
  try {
    options.keep_bytes = ParseBytes(flags.keep);
  } catch (Error& error) {
    throw error.AddContext("--keep");
  }
  options.verify = flags.verify;
  CopyHooks hooks;
  const bool show = !common.quiet && ::isatty(STDERR_FILENO) == 1;
  if (show) {
    hooks.progress = [](uint64_t done, uint64_t total) {
      fmt::print(stderr, "\r\x1b[2K  staging {} of {}", HumanBytes(done), HumanBytes(total));
      std::fflush(stderr);
    };
  }
  StagedCheckpoint staged = Stager(options).Stage(flags.checkpoint, hooks);
  if (show) fmt::print(stderr, "\r\x1b[2K");
  const StageReport& report = staged.report();
  if (common.json) {
    PrintJson({{"fingerprint", staged.fingerprint()},
               {"directory", staged.directory().string()},
               {"report", ToJson(report)}});
  } else {
    Print("{}\n  {}; {} read from storage in {} ({:.2f} GB/s)\n", staged.directory().string(),
          HumanBytes(report.bytes), HumanBytes(report.bytes_read), HumanSeconds(report.seconds),
          report.seconds > 0 ? static_cast<double>(report.bytes_read) / report.seconds / 1e9 : 0.0);
  }
  return ExitStatus::kDone;
}

}  // namespace

void AddStage(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<StageFlags>();
  Command command =
      app.AddCommand("stage", "Copy a checkpoint into shared memory, list or drop what is staged");
  command.AddOption("checkpoint", &flags->checkpoint,
                    "A checkpoint's folder in Hugging Face layout");
  command.AddFlag("--list", &flags->list, "List what is staged on this host");
  command
      .AddOption("--drop", &flags->drop,
                 "Drop a staged checkpoint, by the beginning of its fingerprint, or all")
      .Metavar("FINGERPRINT|all");
  command.AddOption("--root", &flags->root,
                    "Where checkpoints are staged; /dev/shm/evald-<uid> by default");
  command.AddOption("--keep", &flags->keep, "How much may stay staged without being used")
      .Metavar("SIZE");
  command.AddFlag("--verify", &flags->verify,
                  "Read the checkpoint again although its fingerprint is known");
  command.Footer(
      "\nExamples:\n  evald stage checkpoints/step-3000\n  evald stage --list\n  evald stage "
      "--drop all");
  command.OnChosen([=] {
    const int asked =
        (flags->list ? 1 : 0) + (flags->drop.empty() ? 0 : 1) + (flags->checkpoint.empty() ? 0 : 1);
    if (asked != 1) {
      throw Error(ErrorKind::kUsage, "stage: give either a checkpoint's folder, --list or --drop");
    }
    *action = [=] {
      if (flags->list) return List(*common, *flags);
      return flags->drop.empty() ? Stage(*common, *flags) : Drop(*common, *flags);
    };
  });
}

}  // namespace evald::cli
