#include "orchestrator/dataset_fetch/dataset_plan.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "datasets/hub_folder.h"
#include "evald/error.h"

namespace evald::dataset_fetch {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMain = "main";
constexpr const char* kCardName = "README.md";
constexpr const char* kOwnCardRemark =
    "Written by `evald fetch`: the repository itself does not say this in a way that evald reads.";

// The files of one branch, with what says how they make splits.
struct Listing {
  std::string branch, commit;
  std::vector<fetch::HubFile> files;
  std::string card;
  bool own_card = false;
};

const fetch::HubFile* FindFile(const std::vector<fetch::HubFile>& files, const std::string& path) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const fetch::HubFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

// What is kept to fetch a dataset again is no content of the folder.
bool HasContent(const fs::path& folder) {
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename().string();
    if (name != kStagingFolder && name != std::string(kFetchedFile) + ".part") return true;
  }
  return false;
}

class Planner {
 public:
  Planner(const WantedDataset& wanted, const HubSource& source, const fs::path& data_dir,
          bool update, fetch::Hub* hub)
      : wanted_(wanted), source_(source), update_(update), hub_(hub) {
    fetch::RequireRepositoryName(wanted.dataset);
    plan_.folder = data_dir / wanted.dataset;
    repository_.name = source.repository;
  }

  DatasetPlan Plan() {
    kept_ = ReadFetched(plan_.folder);
    if (!kept_ && HasContent(plan_.folder)) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: the folder is there, was not made by 'evald fetch', and lacks "
                              "what the tasks need",
                              plan_.folder.string()),
                  "complete it, or move it away and fetch it again");
    }
    revision_ = Revision();
    CollectSplits();
    Choose();
    return std::move(plan_);
  }

 private:
  std::string Revision() const {
    std::string revision = source_.revision;
    for (const WantedFile& file : wanted_.files)
      if (revision.empty()) revision = file.revision;
    const bool other =
        kept_ && !revision.empty() && revision != kept_->revision && revision != kept_->commit;
    if (other && !update_) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: has the revision {} ({}), and {} is asked for",
                              plan_.folder.string(), kept_->revision, kept_->commit, revision),
                  "--update fetches that");
    }
    return revision.empty() ? kMain : revision;
  }

  void CollectSplits() {
    if (kept_) plan_.fetched.splits = kept_->splits;
    for (const WantedSplit& split : wanted_.splits) {
      if (split.found.empty() && !source_.elsewhere.contains(split.split))
        plan_.fetched.splits.emplace(split.part, split.split);
    }
  }

  void Choose() {
    const bool stays = kept_ && !update_;
    const bool converted = source_.converted || (stays && kept_->branch == kConvertedBranch);
    if (converted) {
      std::string commit = stays ? kept_->commit : source_.revision;
      if (commit.empty()) commit = hub_->Commit(repository_, kConvertedBranch);
      Take(Converted(commit));
      return;
    }
    const Listing main = Main(stays ? kept_->commit : hub_->Commit(repository_, revision_));
    try {
      Take(main);
    } catch (const Error& error) {
      const bool other_way = error.kind() == ErrorKind::kInput && !stays &&
                             source_.revision.empty() && source_.splits.empty() &&
                             wanted_.files.empty();
      const auto commit =
          other_way ? hub_->FindCommit(repository_, kConvertedBranch) : std::nullopt;
      if (!commit) throw;
      TakeConverted(*commit, error);
    }
  }

  void TakeConverted(const std::string& commit, const Error& of_main) {
    try {
      Take(Converted(commit));
    } catch (const Error& error) {
      throw Error(error.kind(),
                  fmt::format("{}; and of its branch {}: {}", of_main.message(), kConvertedBranch,
                              error.message()),
                  error.remedy());
    }
  }

  Listing Main(const std::string& commit) {
    Listing listing{revision_, commit, hub_->Files(repository_, commit), "", false};
    if (!source_.splits.empty()) {
      listing.own_card = true;
      listing.card = CardText({{"default", source_.splits}}, kOwnCardRemark);
      std::erase_if(listing.files, [&](const fetch::HubFile& file) { return !IsNamed(file.path); });
    } else if (const fetch::HubFile* card = FindFile(listing.files, kCardName)) {
      if (!plan_.fetched.splits.empty()) listing.card = hub_->Read(repository_, commit, *card);
    }
    return listing;
  }

  bool IsNamed(const std::string& path) const {
    for (const auto& [split, patterns] : source_.splits) {
      for (const std::string& pattern : patterns)
        if (MatchesPattern(pattern, path)) return true;
    }
    return false;
  }

  Listing Converted(const std::string& commit) {
    Listing listing{kConvertedBranch, commit, hub_->Files(repository_, commit), "", true};
    const std::vector<CardConfig> configs = ConvertedConfigs(listing.files);
    if (configs.empty()) {
      throw Error(ErrorKind::kInput, fmt::format("the branch {} of {} has no files that the hub "
                                                 "converted as a whole",
                                                 kConvertedBranch, repository_.name));
    }
    listing.card = CardText(configs, kOwnCardRemark);
    std::erase_if(listing.files,
                  [](const fetch::HubFile& file) { return !file.path.ends_with(".parquet"); });
    return listing;
  }

  // The plan with the files of this listing.
  void Take(const Listing& listing) {
    std::set<std::string> chosen;
    if (!plan_.fetched.splits.empty()) {
      const std::vector<std::string> of_splits =
          ChooseFiles(repository_.name, listing.files, listing.card,
                      {plan_.fetched.splits.begin(), plan_.fetched.splits.end()});
      chosen.insert(of_splits.begin(), of_splits.end());
      if (!listing.own_card && !listing.card.empty()) chosen.insert(kCardName);
    }
    for (const WantedFile& file : wanted_.files) {
      if (FindFile(listing.files, file.path) == nullptr) {
        throw Error(ErrorKind::kInput,
                    fmt::format("the dataset {} has no file {}", repository_.name, file.path));
      }
      chosen.insert(file.path);
    }
    if (kept_) {
      for (const auto& [path, file] : kept_->files) {
        if (FindFile(listing.files, path) != nullptr)
          chosen.insert(path);
        else if (path != kCardName || !listing.own_card)
          plan_.gone.push_back(path);
      }
    }
    for (const std::string& path : chosen)
      plan_.files.push_back(Planned(listing, *FindFile(listing.files, path)));
    plan_.card = listing.own_card && !plan_.fetched.splits.empty() ? listing.card : "";
    plan_.fetched.repository = repository_.name;
    plan_.fetched.revision = revision_;
    plan_.fetched.branch = listing.branch;
    plan_.fetched.commit = listing.commit;
  }

  PlannedFile Planned(const Listing& listing, const fetch::HubFile& file) const {
    PlannedFile planned;
    planned.path = file.path;
    planned.source = hub_->SourceOf(repository_, listing.commit, file);
    if (const auto pin = source_.files.find(file.path); pin != source_.files.end())
      Pin(pin->second, &planned);
    if (planned.source.sha256.empty() && planned.source.git_blob.empty()) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: the hub lists the file {} without a hash", repository_.name, file.path),
          "give its hash in a sources.yaml (docs/fetch.md), or use another endpoint");
    }
    planned.there = HashOfRightFile(planned.source, plan_.folder / planned.path);
    return planned;
  }

  static void Pin(const PinnedFile& pin, PlannedFile* planned) {
    fetch::Source* source = &planned->source;
    const auto fail = [&](const char* what, const auto& expected, const auto& found) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: expected the {} {} of {}, the hub has {}", pin.where, what,
                              expected, planned->path, found),
                  "if the file was replaced rightly, change the hash there");
    };
    if (pin.bytes && source->bytes && *pin.bytes != *source->bytes)
      fail("size", *pin.bytes, *source->bytes);
    if (pin.sha256.empty()) return;
    if (!source->sha256.empty() && source->sha256 != pin.sha256)
      fail("SHA-256", pin.sha256, source->sha256);
    source->sha256 = pin.sha256;
    planned->pinned = true;
  }

  const WantedDataset& wanted_;
  const HubSource& source_;
  bool update_;
  fetch::Hub* hub_;
  fetch::HubRepository repository_;
  std::optional<Fetched> kept_;
  std::string revision_;
  DatasetPlan plan_;
};

}  // namespace

std::string HashOfRightFile(const fetch::Source& source, const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return "";
  try {
    return fetch::CheckContent(source, fd.get(), path);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInput) return "";
    throw;
  }
}

DatasetPlan PlanDataset(const WantedDataset& wanted, const HubSource& source,
                        const fs::path& data_dir, bool update, fetch::Hub* hub) {
  return Planner(wanted, source, data_dir, update, hub).Plan();
}

}  // namespace evald::dataset_fetch
