#include "orchestrator/watch/checkpoint_scan.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <tuple>

#include "base/hash.h"
#include "base/log.h"
#include "checkpoint/layout.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kEntriesMax = 1'000'000;

// Sizes and times of what would be staged; "" when something cannot be looked at just now.
std::string IdentityOf(const CheckpointLayout& layout) {
  std::string text;
  for (const CheckpointFile& file : layout.files) {
    struct stat about {};
    if (!layout.folder.Stat(file.name, &about)) return "";
    text += fmt::format("{} {} {}.{}\n", file.name, about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
  }
  return HashHex(text);
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

CheckpointScan::CheckpointScan(fs::path folder, std::string marker, double settle_s, ReadRoots roots)
    : folder_(std::move(folder)), marker_(std::move(marker)), settle_s_(settle_s), roots_(std::move(roots)) {}

std::vector<FoundCheckpoint> CheckpointScan::Scan(double now_s) {
  const ReadFolder folder(folder_, roots_);
  if (!folder.exists()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: cannot be read: {}", folder_.string(),
                            roots_.anywhere() ? std::strerror(folder.failure()) : ReadRoots::kNotThere),
                "--checkpoints names the folder that a training run writes its checkpoints into");
  }
  unsettled_ = false;
  std::vector<FoundCheckpoint> found;
  for (const std::string& name : folder.Names(".", kEntriesMax)) {
    if (name[0] == '.' || !folder.HasFolder(name)) continue;
    const fs::path path = folder / name;
    const ReadFolder checkpoint = folder.Folder(name);
    struct stat about {};
    if (!marker_.empty() && !checkpoint.Stat(marker_, &about)) continue;
    try {
      const CheckpointLayout layout = ReadCheckpointLayout(checkpoint);
      const std::string identity = IdentityOf(layout);
      Seen& seen = seen_[name];
      if (seen.identity != identity) seen = {identity, now_s, false};
      const bool at_rest = !marker_.empty() || now_s - seen.since_s >= settle_s_;
      if (identity.empty() || !at_rest) {
        unsettled_ = true;
        continue;
      }
      if (!seen.whole) CheckShards(layout);
      seen.whole = true;
      found.push_back({path, name, identity});
    } catch (const Error& e) {  // not whole yet, or not a checkpoint
      log::Debug("{}: {}", path.string(), e.what());
      unsettled_ = true;
    }
  }
  std::sort(found.begin(), found.end(), [](const FoundCheckpoint& a, const FoundCheckpoint& b) {
    return std::tuple(StepOf(a.name), a.name) < std::tuple(StepOf(b.name), b.name);
  });
  return found;
}

}  // namespace evald
