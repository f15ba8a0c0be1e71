#include "orchestrator/watch/checkpoint_scan.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <tuple>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/weight_index.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kEntriesMax = 20'000;  // each takes about 1 KiB of memory for as long as the watch
// Files named by an index; checkpoints have hundreds of shards
constexpr size_t kNamedMax = 10'000;
constexpr double kRefusedSeconds = 600;
constexpr const char* kConfigFile = "config.json";  // a folder with this file is to be a checkpoint

// A hash of the sizes and times of the files to stage; "" if one cannot be looked at now.
std::string IdentityOf(const CheckpointLayout& layout) {
  std::string text;
  for (const CheckpointFile& file : layout.files) {
    struct stat about{};
    if (!layout.folder.Stat(file.name, &about)) return "";
    text += fmt::format("{} {} {}.{}\n", file.name, about.st_size, about.st_mtim.tv_sec,
                        about.st_mtim.tv_nsec);
  }
  return HashHex(text);
}

// The stamp of a checkpoint's files at one moment, found without opening any.
struct Stamp {
  std::string quiet;  // names, sizes, times of content
  // Also devices, inodes and change times, which some file systems make up anew at each look
  std::string exact;
};

Stamp StampOf(const ReadFolder& checkpoint, const std::vector<std::string>& named) {
  std::vector<std::string> names = CandidateNames(checkpoint);
  names.insert(names.end(), named.begin(), named.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string quiet, exact;
  for (const std::string& name : names) {
    struct stat about{};
    if (!checkpoint.Stat(name, &about)) {
      quiet += name + " absent\n";
      continue;
    }
    quiet += fmt::format("{} {} {}.{}\n", name, about.st_size, about.st_mtim.tv_sec,
                         about.st_mtim.tv_nsec);
    exact += fmt::format("{} {} {}.{}\n", about.st_dev, about.st_ino, about.st_ctim.tv_sec,
                         about.st_ctim.tv_nsec);
  }
  return {HashHex(quiet), HashHex(quiet + exact)};
}

// The files that the index names. They may lie in subfolders, and may not exist yet.
std::vector<std::string> NamedByIndex(const ReadFolder& checkpoint) {
  std::vector<std::string> named;
  if (!checkpoint.HasFile(kWeightIndexFile)) return named;
  try {
    for (const IndexEntry& entry :
         ReadWeightIndex(checkpoint.OpenFile(kWeightIndexFile), checkpoint / kWeightIndexFile)) {
      if (named.size() < kNamedMax && (named.empty() || named.back() != entry.shard))
        named.push_back(entry.shard);
    }
  } catch (const Error&) {  // the later check reports the reason
    named.clear();
  }
  return named;
}

}  // namespace

int64_t StepOf(const std::string& name) {
  const size_t end = name.find_last_of("0123456789");
  if (end == std::string::npos) return -1;
  size_t begin = end;
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  int64_t step = -1;
  const auto parsed = std::from_chars(name.data() + begin, name.data() + end + 1, step);
  return parsed.ec == std::errc() ? step : INT64_MAX;
}

CheckpointScan::CheckpointScan(fs::path folder, std::string marker, double settle_s,
                               ReadRoots roots)
    : folder_(std::move(folder)),
      marker_(std::move(marker)),
      settle_s_(settle_s),
      roots_(std::move(roots)) {}

std::vector<FoundCheckpoint> CheckpointScan::Scan(double now_s, const std::atomic<bool>* ending) {
  const ReadFolder folder(folder_, roots_);
  if (!folder.exists()) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: cannot be read: {}", folder_.string(),
                    roots_.anywhere() ? std::strerror(folder.failure()) : ReadRoots::kNotThere),
        "--checkpoints names the folder that a training run writes its checkpoints into");
  }
  unsettled_ = settling_ = false;
  std::vector<FoundCheckpoint> found;
  std::map<std::string, Seen> before = std::move(seen_);
  seen_.clear();
  for (const std::string& name : folder.Names(".", kEntriesMax)) {
    if (ending != nullptr && *ending) break;
    struct stat about{};
    if (name[0] == '.' || !folder.Stat(name, &about) || !S_ISDIR(about.st_mode)) continue;
    if (!IsUtf8(name)) {  // no message, record or answer could name the checkpoint
      if (before.count(name) == 0) {
        log::Warn("{}: the folder '{}' is passed over: its name is not UTF-8; rename it",
                  folder_.string(), name);
      }
      seen_[name];
      continue;
    }
    const ReadFolder checkpoint = folder.Folder(name);
    if (!marker_.empty() && !checkpoint.Stat(marker_, &about)) continue;
    Seen& seen = seen_[name] = std::move(before[name]);
    if (IsWhole(checkpoint, now_s, &seen)) {
      found.push_back({folder / name, name, seen.identity});
    } else {
      unsettled_ = true;
    }
  }
  std::sort(found.begin(), found.end(), [](const FoundCheckpoint& a, const FoundCheckpoint& b) {
    return std::tuple(StepOf(a.name), a.name) < std::tuple(StepOf(b.name), b.name);
  });
  return found;
}

// No file is opened before all files are at rest, and none again before one has changed.
bool CheckpointScan::IsWhole(const ReadFolder& checkpoint, double now_s, Seen* seen) {
  try {
    Stamp stamp = StampOf(checkpoint, seen->named);
    if (!AtRest(stamp.quiet, now_s, seen)) return false;
    const bool refused_lately = seen->identity.empty() && now_s - seen->checked_s < kRefusedSeconds;
    if (stamp.exact == seen->exact && (!seen->identity.empty() || refused_lately))
      return !seen->identity.empty();
    seen->named = NamedByIndex(checkpoint);
    stamp = StampOf(checkpoint, seen->named);
    if (!AtRest(stamp.quiet, now_s, seen)) return false;
    Check(checkpoint, seen);
    seen->exact = stamp.exact;
    seen->checked_s = now_s;
    return !seen->identity.empty();
  } catch (const Error& e) {  // the checkpoint's folder cannot be listed
    log::Debug("{}: {}", checkpoint.path().string(), e.what());
    return false;
  }
}

bool CheckpointScan::AtRest(const std::string& quiet, double now_s, Seen* seen) {
  if (seen->quiet != quiet) {
    seen->quiet = quiet;
    seen->since_s = now_s;
  }
  const bool at_rest = !marker_.empty() || now_s - seen->since_s >= settle_s_;
  settling_ = settling_ || !at_rest;
  return at_rest;
}

void CheckpointScan::Check(const ReadFolder& checkpoint, Seen* seen) {
  seen->identity.clear();
  try {
    const CheckpointLayout layout = ReadCheckpointLayout(checkpoint);
    CheckShards(layout);
    seen->identity = IdentityOf(layout);
    seen->refusal.clear();
  } catch (const Error& e) {  // not complete yet, or no checkpoint
    if (seen->refusal == e.what()) return;
    seen->refusal = e.what();
    const std::string path = PrintableLine(checkpoint.path().string());
    if (checkpoint.HasFile(kConfigFile)) {
      log::Warn("{}: is not evaluated yet, because it is no whole checkpoint: {}", path, e.what());
    } else {
      log::Debug("{}: {}", path, e.what());
    }
  }
}

}  // namespace evald
