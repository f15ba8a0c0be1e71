#include <filesystem>

#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/follow.h"
#include "orchestrator/cli/run_text.h"
#include "orchestrator/cli/watch_folder.h"

namespace evald::cli {
namespace {

struct WatchFlags {
  std::string subject;  // a run's id, or an eval.yaml
  FolderWatch folder;
  std::vector<CommandOption> folder_options;  // options that go with --checkpoints
  bool detach = false;
  bool list = false;
  std::string remove;
  ClientFlags client;
};

ExitStatus FollowToEnd(Client* client, const std::string& run, const Common& common) {
  if (std::filesystem::is_regular_file(run)) {
    throw Error(ErrorKind::kUsage, "'" + run + "' is a file, expected a run's id",
                "to have a folder watched: evald watch --checkpoints DIR " + run);
  }
  const Json now = FollowRun(client, run, common, true);
  return common.json ? StatusOfRun(now) : PrintRun(now, common);
}

ExitStatus Watch(const Common& common, const WatchFlags& flags) {
  const int asked =
      (flags.list ? 1 : 0) + (flags.remove.empty() ? 0 : 1) + (flags.subject.empty() ? 0 : 1);
  if (asked != 1) {
    throw Error(ErrorKind::kUsage,
                "expected one of: RUN, --checkpoints DIR eval.yaml, --list, --remove ID",
                "see 'evald watch --help'");
  }
  for (const CommandOption& option : flags.folder_options) {
    if (!option.given() || !flags.folder.checkpoints.empty()) continue;
    throw Error(ErrorKind::kUsage, option.name() + " goes with --checkpoints DIR",
                "see 'evald watch --help'");
  }
  Client client(ReadClientFlags(flags.client));
  if (flags.list) return ListWatches(&client, common);
  if (!flags.remove.empty()) return RemoveWatch(&client, flags.remove, common);
  if (flags.folder.checkpoints.empty()) return FollowToEnd(&client, flags.subject, common);
  FolderWatch folder = flags.folder;
  folder.submission.wanted.path = flags.subject;
  return WatchFolder(&client, folder, flags.detach, common);
}

void AddFolderFlags(Command command, WatchFlags* flags) {
  constexpr const char* kGroup = "A folder";
  FolderWatch* folder = &flags->folder;
  command
      .AddOption("--checkpoints", &folder->checkpoints,
                 "Have the service evaluate each new checkpoint in this folder of its host")
      .Metavar("DIR")
      .Group(kGroup);
  const auto goes_with = [&](CommandOption option) {
    flags->folder_options.push_back(option.Group(kGroup));
  };
  goes_with(command
                .AddOption("--policy", &folder->policy,
                           "Which: all (default), newest whenever the last one is done, every-N")
                .Metavar("WHICH"));
  goes_with(command
                .AddOption("--marker", &folder->marker,
                           "A checkpoint is complete when it holds a file of this name")
                .Metavar("FILE"));
  goes_with(command
                .AddOption("--settle", &folder->settle_s,
                           "Without a marker: when nothing of it changed for so long (5)")
                .Within(0.0, 86400.0)
                .Metavar("SECONDS"));
  goes_with(command
                .AddOption("--set", &folder->submission.wanted.overrides.set,
                           "Override a value of eval.yaml")
                .Metavar("KEY.PATH=VALUE")
                .OneArgument());
  goes_with(command
                .AddOption("--data-dir", &folder->submission.wanted.overrides.data_dir,
                           "Where datasets lie (data_dir)")
                .Metavar("DIR"));
  goes_with(command
                .AddOption("--user", &folder->submission.user,
                           "Whose share of the devices the runs count against")
                .Metavar("NAME"));
  goes_with(command
                .AddOption("--priority", &folder->submission.priority,
                           "Of the runs, -100 to 100; higher goes first")
                .Within(-100, 100)
                .Metavar("N"));
  goes_with(command.AddFlag("--detach", &flags->detach, "Print the watch's id and end"));
  command.AddFlag("--list", &flags->list, "Show the service's watches and what they did")
      .Group(kGroup);
  command.AddOption("--remove", &flags->remove, "End a watch; its runs go on")
      .Metavar("ID")
      .Group(kGroup);
}

}  // namespace

void AddWatch(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<WatchFlags>();
  Command command = app.AddCommand(
      "watch", "Follow a service's run to its end, or have it watch a folder for checkpoints");
  command
      .AddOption("run|eval.yaml", &flags->subject,
                 "A run's id; with --checkpoints, the eval.yaml that each is evaluated by")
      .Metavar("");
  AddFolderFlags(command, flags.get());
  AddClientFlags(command, &flags->client);
  command.Footer(
      "\nA run: the exit status is the run's. A connection that breaks is made again and goes on "
      "where it was.\n"
      "Ctrl-C ends the watching, not the run.\n\n"
      "A folder: the service keeps the watch, with eval.yaml as it is now, until it is removed; "
      "restarts do not\n"
      "matter. Each whole checkpoint is submitted once, those that are there already too. Ctrl-C "
      "ends the display.\n\n"
      "With --json, each event is a line.\n\n"
      "Examples:\n"
      "  evald watch RUN\n"
      "  evald watch --checkpoints /train/run7/checkpoints eval.yaml --policy newest\n"
      "  evald watch --list\n"
      "  evald watch --remove watch-0123456789ab");
  command.OnChosen([=] { *action = [=] { return Watch(*common, *flags); }; });
}

}  // namespace evald::cli
