#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/print.h"
#include "base/text.h"
#include "datasets/task_set.h"
#include "fetch/hub_settings.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/fetch_text.h"
#include "orchestrator/dataset_fetch/dataset_fetch.h"
#include "orchestrator/report/progress.h"

namespace evald::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kRedraw{100};
constexpr const char* kSourcesFile = "sources.yaml";

struct FetchFlags {
  std::vector<std::string> names;
  std::vector<std::string> task_dirs;
  std::string data_dir = "data";
  std::string endpoint;
  fs::path ca_file;
  std::string sources;
  int parallel = 4;
  bool list = false;
  bool dry_run = false;
  bool update = false;
  bool pin = false;
};

double Now() { return static_cast<double>(MonotonicMicros()) / 1e6; }

ResolvedTasks TasksOf(const FetchFlags& flags) {
  const TaskRegistry registry({flags.task_dirs.begin(), flags.task_dirs.end()});
  std::vector<TaskRequest> requests;
  for (const std::string& name : flags.names) {
    requests.emplace_back().name = name;
    requests.back().where = "the command line";
  }
  return registry.Resolve(requests);
}

// The user's own table: the one that is named, else the one in the data's folder.
fs::path SourcesPath(const FetchFlags& flags) {
  return flags.sources.empty() ? fs::path(flags.data_dir) / kSourcesFile : fs::path(flags.sources);
}

dataset_fetch::SourceTable ReadSources(const FetchFlags& flags) {
  const fs::path path = SourcesPath(flags);
  // With --pin the file may be yet to be made.
  if (!fs::exists(path) && (flags.sources.empty() || flags.pin)) return {};
  if (!fs::is_regular_file(path))
    throw Error(ErrorKind::kUsage, path.string() + ": is no file, expected a sources.yaml");
  return dataset_fetch::ParseSourceTable(ReadFile(path), path.string());
}

// Shows how a fetch goes on, from a thread of its own, until it is destroyed.
class FetchProgress {
 public:
  explicit FetchProgress(bool quiet) : display_(quiet), thread_([this] { Show(); }) {}
  FetchProgress(const FetchProgress&) = delete;
  FetchProgress& operator=(const FetchProgress&) = delete;
  ~FetchProgress() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
    if (progress_.files_total > 0) display_.Finish(Snapshot());
  }

  fetch::DownloadProgress* counters() { return &progress_; }
  void Notice(const std::string& line) {
    const std::lock_guard lock(mutex_);
    notice_ = line;
    notice_until_ = Now() + kNoticeSeconds;
  }

 private:
  static constexpr double kNoticeSeconds = 3;

  void Show() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kRedraw, [this] { return ended_; })) {
      if (progress_.files_total == 0 && notice_.empty()) continue;
      ProgressSnapshot snapshot = Snapshot();
      if (Now() < notice_until_) snapshot.remark = notice_;
      display_.Show(snapshot);
    }
  }

  ProgressSnapshot Snapshot() const {
    ProgressSnapshot snapshot;
    snapshot.elapsed_s = Now() - begun_;
    const int64_t done = progress_.bytes, total = progress_.bytes_total;
    if (done > 0 && total > done) {
      snapshot.remaining_s =
          snapshot.elapsed_s * static_cast<double>(total - done) / static_cast<double>(done);
    }
    PhaseProgress phase{
        "fetch", done, total, true,
        fmt::format("{} of {} files", progress_.files.load(), progress_.files_total.load())};
    snapshot.phases.push_back(std::move(phase));
    return snapshot;
  }

  const double begun_ = Now();
  fetch::DownloadProgress progress_;
  ProgressDisplay display_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::string notice_;
  double notice_until_ = 0;
  std::thread thread_;
};

std::vector<dataset_fetch::DatasetEnd> FetchAll(const Common& common, const FetchFlags& flags,
                                                const dataset_fetch::WantedData& wanted,
                                                dataset_fetch::SourceTable sources) {
  FetchProgress progress(common.quiet);
  dataset_fetch::FetchSettings settings;
  settings.data_dir = flags.data_dir;
  settings.access.endpoint = fetch::HubEndpoint(flags.endpoint);
  settings.access.token = fetch::HubToken();
  settings.access.ca_file = flags.ca_file;
  settings.access.notice = [&](const std::string& line) { progress.Notice(line); };
  settings.sources = std::move(sources);
  settings.parallel = flags.parallel;
  settings.update = flags.update;
  settings.plan_only = flags.dry_run;
  return dataset_fetch::FetchDatasets(wanted, settings, progress.counters());
}

// The errors of the datasets, then what still lacks for another reason.
std::vector<Error> FailuresOf(const std::vector<dataset_fetch::DatasetEnd>& ends,
                              const std::vector<MissingData>& missing) {
  std::vector<Error> failures;
  for (const auto& end : ends) {
    for (const Error& error : end.failures) {
      const bool known = std::any_of(failures.begin(), failures.end(), [&](const Error& other) {
        return std::string_view(other.what()) == error.what();
      });
      if (!known) failures.push_back(error);
    }
  }
  for (const MissingData& one : missing) {
    const bool told = std::any_of(ends.begin(), ends.end(), [&](const auto& end) {
      return end.dataset == one.dataset && !end.failures.empty();
    });
    if (!told) failures.emplace_back(ErrorKind::kInput, one.problem, one.remedy);
  }
  return failures;
}

ExitStatus Fetch(const Common& common, const FetchFlags& flags) {
  const ResolvedTasks tasks = TasksOf(flags);
  const dataset_fetch::SourceTable sources = ReadSources(flags);
  dataset_fetch::WantedData wanted = dataset_fetch::WantedDataOf(tasks, flags.data_dir);
  if (flags.list) {
    const DataList list =
        ListOf(wanted, sources, fetch::HubEndpoint(flags.endpoint), flags.data_dir);
    if (common.json)
      PrintJson(ToJson(list));
    else
      PrintLines(ListText(list));
    return ExitStatus::kDone;
  }
  const auto ends = FetchAll(common, flags, wanted, sources);
  if (!flags.dry_run) wanted = dataset_fetch::WantedDataOf(tasks, flags.data_dir);
  const std::vector<MissingData> missing = MissingOf(wanted, sources);
  const std::vector<Error> failures =
      FailuresOf(ends, flags.dry_run ? std::vector<MissingData>() : missing);
  if (flags.pin && !flags.dry_run) {
    const fs::path path = SourcesPath(flags);
    WriteOutput(path, dataset_fetch::SourceTableText(dataset_fetch::WithPins(sources, ends)));
  }
  if (common.json) {
    PrintJson(FetchJson(ends, wanted, missing, failures, flags.data_dir));
  } else {
    PrintLines(FetchText(ends, wanted, flags.names, flags.data_dir, flags.dry_run));
    const size_t unpinned = UnpinnedFiles(ends);
    if (flags.pin && !flags.dry_run)
      Print("the hashes are in {}\n", SourcesPath(flags).string());
    else if (unpinned > 0 && !flags.dry_run)
      Print("{} files are in no sources.yaml; --pin writes their hashes to {}\n", unpinned,
            SourcesPath(flags).string());
  }
  for (const Error& error : failures) Print(stderr, "evald: error: {}\n", error.what());
  if (failures.empty()) return ExitStatus::kDone;
  const bool again = std::any_of(failures.begin(), failures.end(), [](const Error& error) {
    return ExitStatusFor(error.kind()) == ExitStatus::kIncomplete;
  });
  return again ? ExitStatus::kIncomplete : ExitStatus::kUsage;
}

}  // namespace

void AddFetch(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<FetchFlags>();
  Command command = app.AddCommand(
      "fetch", "Get the datasets that tasks need from the Hugging Face hub or a mirror of it");
  command.AddOption("names", &flags->names, "Tasks, groups, tags or suites").Required();
  command.AddOption("--data-dir", &flags->data_dir, "Where datasets lie; default: data")
      .Metavar("DIR");
  command.AddOption("--task-dir", &flags->task_dirs, "A folder with more task files")
      .OneArgument()
      .Metavar("DIR");
  command.AddFlag("--list", &flags->list,
                  "Ask nobody: print what each dataset is, and where to put it");
  command.AddFlag("--dry-run", &flags->dry_run,
                  "Ask the hub which files are needed, and fetch none");
  command
      .AddOption("--endpoint", &flags->endpoint,
                 "The hub, or a mirror or proxy of it; else HF_ENDPOINT, else "
                 "https://huggingface.co")
      .Metavar("URL");
  command.AddOption("--ca-file", &flags->ca_file, "Certificates (PEM) in place of the system's")
      .Metavar("FILE");
  command.AddOption("--parallel", &flags->parallel, "Files at a time; default: 4")
      .Within(1, 64)
      .Metavar("COUNT");
  command.AddFlag("--update", &flags->update,
                  "Datasets that were fetched before move to the newest commit");
  command
      .AddOption("--sources", &flags->sources,
                 "Revisions and hashes of your own; default: sources.yaml in the data's folder")
      .Metavar("FILE");
  command.AddFlag("--pin", &flags->pin, "Write what was found to that file; later fetches compare");
  command.Footer(
      "\nThe token of a gated dataset: HF_TOKEN, or the file of 'hf auth login'.\n\n"
      "Examples:\n  evald fetch mmlu gsm8k --data-dir data\n  evald fetch base --dry-run\n"
      "  evald fetch base --list                     what to place where, without a network\n"
      "  evald fetch mmlu --endpoint https://hf.example.org --pin");
  command.OnChosen([=] { *action = [=] { return Fetch(*common, *flags); }; });
}

}  // namespace evald::cli
