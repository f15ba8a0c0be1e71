#include "orchestrator/dataset_fetch/dataset_fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <span>

#include "base/file.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "datasets/hub_folder.h"
#include "orchestrator/dataset_fetch/dataset_plan.h"
#include "orchestrator/dataset_fetch/fetched_folder.h"

namespace evald::dataset_fetch {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLockFile = ".evald-fetch.lock";
constexpr const char* kStagedCard = "README";
constexpr mode_t kOwnFile = 0600;

// Held by one `evald fetch` of a folder.
UniqueFd Lock(const fs::path& data_dir) {
  MakeDirectories(data_dir);
  const fs::path file = data_dir / kLockFile;
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnFile));
  if (!lock) ThrowErrno(file, "open", errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) ThrowErrno(file, "flock", errno);
  throw Error(ErrorKind::kUsage,
              data_dir.string() + ": another 'evald fetch' is at work in this folder",
              "wait until it has ended");
}

// One dataset on its way.
struct Fetching {
  DatasetEnd end;
  DatasetPlan plan;
  bool planned = false;
};

// Named by the content, so that a file is found again whatever commit it is of.
fs::path StagedPath(const DatasetPlan& plan, const PlannedFile& file) {
  const fetch::Source& source = file.source;
  const std::string key = !source.sha256.empty()     ? source.sha256
                          : !source.git_blob.empty() ? source.git_blob
                                                     : ContentKey(source.url);
  return plan.folder / kStagingFolder / key;
}

// What is kept of a dataset that has all that is wanted, if every file is still as it was fetched.
// The hub is not asked.
std::optional<DatasetEnd> AllKept(const WantedDataset& wanted, const HubSource& source,
                                  const FetchSettings& settings) {
  if (settings.update || !wanted.AllThere()) return std::nullopt;
  DatasetEnd end{
      wanted.dataset, source.repository, settings.data_dir / wanted.dataset, "", "", {}, {}};
  const std::optional<Fetched> kept = ReadFetched(end.folder);
  if (!kept) return std::nullopt;
  const std::string& asked = source.revision;
  if (!asked.empty() && asked != kept->revision && asked != kept->commit) return std::nullopt;
  end.branch = kept->branch;
  end.commit = kept->commit;
  for (const auto& [path, file] : kept->files) {
    fetch::Source content;
    content.bytes = file.bytes;
    content.sha256 = file.sha256;
    const auto pin = source.files.find(path);
    const bool pinned = pin != source.files.end() && !pin->second.sha256.empty();
    if (pinned && pin->second.sha256 != file.sha256) return std::nullopt;
    if (HashOfRightFile(content, end.folder / path).empty()) return std::nullopt;
    end.files.push_back({path, file.bytes, FileEnd::State::kThere, file.sha256, pinned});
  }
  return end;
}

Fetching Begin(const WantedDataset& wanted, const FetchSettings& settings, fetch::Hub* hub) {
  Fetching one;
  const HubSource source = SourceOf(wanted.dataset, settings.sources, BuiltinSourceTable());
  if (auto end = AllKept(wanted, source, settings)) {
    one.end = std::move(*end);
    return one;
  }
  one.end.dataset = wanted.dataset;
  one.end.repository = source.repository;
  one.end.folder = settings.data_dir / wanted.dataset;
  try {
    one.plan = PlanDataset(wanted, source, settings.data_dir, settings.update, hub);
    one.planned = true;
    one.end.branch = one.plan.fetched.branch;
    one.end.commit = one.plan.fetched.commit;
  } catch (const Error& error) {
    one.end.failures.push_back(error);
  }
  for (const PlannedFile& file : one.plan.files) {
    const bool there = !file.there.empty();
    one.end.files.push_back({file.path, file.source.bytes.value_or(0),
                             there ? FileEnd::State::kThere : FileEnd::State::kToFetch,
                             there ? file.there : file.source.sha256, file.pinned});
  }
  return one;
}

// A dataset whose files were not asked for is fetched if something lacks, or looked through if it
// was fetched before.
bool IsWorkFor(const WantedDataset& wanted, const FetchSettings& settings) {
  if (fs::exists(settings.data_dir / wanted.dataset / kFetchedFile)) return true;
  if (wanted.AllThere()) return false;
  const HubSource source = SourceOf(wanted.dataset, settings.sources, BuiltinSourceTable());
  for (const WantedSplit& split : wanted.splits)
    if (split.found.empty() && !source.elsewhere.contains(split.split)) return true;
  for (const WantedFile& file : wanted.files)
    if (!file.there) return true;
  return false;
}

// The downloads of all datasets. Two files of one content in one dataset are downloaded once.
class Downloads {
 public:
  Downloads(const FetchSettings& settings, std::vector<Fetching>* all)
      : settings_(settings), all_(all) {
    for (size_t d = 0; d < all->size(); ++d) {
      if ((*all)[d].planned) AddDataset(d);
    }
  }

  void Run(fetch::DownloadProgress* progress) {
    const std::vector<fetch::JobEnd> ends =
        fetch::DownloadAll(jobs_, settings_.parallel, settings_.access, progress);
    for (size_t i = 0; i < ends.size(); ++i)
      for (const Place& place : places_[i]) Note(ends[i], place);
  }

 private:
  struct Place {
    size_t dataset, file;
  };

  // Leaves the dataset out if there is no room for it beside those before.
  void AddDataset(size_t d) {
    Fetching& one = (*all_)[d];
    const size_t before = jobs_.size();
    for (size_t f = 0; f < one.plan.files.size(); ++f)
      if (one.plan.files[f].there.empty()) Add(one.plan, d, f);
    try {
      const uint64_t bytes = fetch::BytesToWrite(std::span(jobs_).subspan(before));
      fetch::RequireRoom(settings_.data_dir, bytes_ + bytes);
      bytes_ += bytes;
    } catch (const Error& error) {
      one.end.failures.push_back(error);
      for (size_t i = before; i < jobs_.size(); ++i) by_target_.erase(jobs_[i].target);
      jobs_.resize(before);
      places_.resize(before);
    }
  }

  void Add(const DatasetPlan& plan, size_t d, size_t f) {
    fetch::Job job{plan.files[f].source, StagedPath(plan, plan.files[f])};
    if (const auto same = by_target_.find(job.target); same != by_target_.end()) {
      places_[same->second].push_back({d, f});
      return;
    }
    // Staged whole by an earlier call, which another file of the dataset stopped.
    const std::string sha256 = HashOfRightFile(job.source, job.target);
    if (!sha256.empty()) {
      (*all_)[d].end.files[f].sha256 = sha256;
      return;
    }
    by_target_[job.target] = jobs_.size();
    jobs_.push_back(std::move(job));
    places_.push_back({{d, f}});
  }

  void Note(const fetch::JobEnd& end, const Place& place) {
    DatasetEnd& dataset = (*all_)[place.dataset].end;
    FileEnd& file = dataset.files[place.file];
    if (end.downloaded) {
      file.sha256 = end.downloaded->sha256;
      file.bytes = end.downloaded->bytes;
    } else {
      file.state = FileEnd::State::kFailed;
      dataset.failures.push_back(*end.failure);
    }
  }

  const FetchSettings& settings_;
  std::vector<Fetching>* all_;
  std::vector<fetch::Job> jobs_;
  std::vector<std::vector<Place>> places_;  // by job
  std::map<fs::path, size_t> by_target_;
  uint64_t bytes_ = 0;  // of all jobs
};

// Puts the files of a dataset in place, if all have come.
void Place(Fetching* one) {
  if (!one->planned || !one->end.failures.empty()) return;
  const DatasetPlan& plan = one->plan;
  Fetched fetched = plan.fetched;
  std::vector<ReadyFile> ready;
  for (size_t i = 0; i < plan.files.size(); ++i) {
    FileEnd& end = one->end.files[i];
    fetched.files[end.path] = {end.bytes, end.sha256};
    if (end.state != FileEnd::State::kToFetch) continue;
    // Two files of one content are staged once.
    const fs::path staged = StagedPath(plan, plan.files[i]);
    const fs::path own = fmt::format("{}.{}", staged.string(), i);
    std::error_code ignored;
    fs::remove(own, ignored);
    if (::link(staged.c_str(), own.c_str()) != 0) fs::copy_file(staged, own);
    ready.push_back({end.path, own});
    end.state = FileEnd::State::kFetched;
  }
  if (!plan.card.empty()) {
    const fs::path staged = plan.folder / kStagingFolder / kStagedCard;
    MakeDirectories(staged.parent_path());
    WriteFileAtomic(staged, plan.card);
    ready.push_back({"README.md", staged});
    fetched.files["README.md"] = {plan.card.size(), Sha256Hex(plan.card)};
  }
  MakeDirectories(plan.folder);
  PutInPlace(plan.folder, fetched, ready, plan.gone);
  std::error_code ignored;
  fs::remove_all(plan.folder / kStagingFolder, ignored);
}

}  // namespace

const char* ToString(FileEnd::State state) {
  constexpr const char* kNames[] = {"there", "fetched", "to fetch", "failed"};
  return kNames[static_cast<int>(state)];
}

std::vector<DatasetEnd> FetchDatasets(const WantedData& wanted, const FetchSettings& settings,
                                      fetch::DownloadProgress* progress) {
  UniqueFd lock;
  if (!settings.plan_only) lock = Lock(settings.data_dir);
  fetch::Hub hub(settings.access);
  std::vector<Fetching> all;
  for (const WantedDataset& dataset : wanted.datasets)
    if (IsWorkFor(dataset, settings)) all.push_back(Begin(dataset, settings, &hub));
  Downloads downloads(settings, &all);
  if (!settings.plan_only) {
    downloads.Run(progress);
    for (Fetching& one : all) Place(&one);
  }
  std::vector<DatasetEnd> ends;
  for (Fetching& one : all) ends.push_back(std::move(one.end));
  return ends;
}

SourceTable WithPins(SourceTable user, const std::vector<DatasetEnd>& ends) {
  for (const DatasetEnd& end : ends) {
    if (end.commit.empty() || !end.failures.empty()) continue;
    HubSource& source = user[end.dataset];
    source.dataset = end.dataset;
    source.repository = end.repository;
    source.revision = end.commit;
    source.converted = end.branch == kConvertedBranch;
    for (const FileEnd& file : end.files) {
      if (file.sha256.empty()) continue;
      source.files[file.path].bytes = file.bytes;
      source.files[file.path].sha256 = file.sha256;
    }
  }
  return user;
}

}  // namespace evald::dataset_fetch
