#include "orchestrator/staging/stager.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/text.h"
#include "evald/error.h"
#include "orchestrator/staging/chunk_list.h"
#include "orchestrator/staging/chunk_reader.h"
#include "orchestrator/staging/fingerprint.h"
#include "orchestrator/staging/free_space.h"
#include "orchestrator/staging/reserve.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr useconds_t kOwnerPollMicros = 20'000;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kOwnFilesBytes = 64 * 1024;  // folders, lease and records
// Each file's part of the landed record and of the list of chunks, without its name
constexpr uint64_t kListedBytes = 96;
constexpr uint64_t kListedChunkBytes = 35;  // a hash in quotes, with a comma
static_assert(kLandedChunkBytes == kHashChunkBytes);

// Removes a half-staged folder unless it was published.
class StagingGuard {
 public:
  explicit StagingGuard(fs::path folder) : folder_(std::move(folder)) {}
  ~StagingGuard() {
    if (!folder_.empty()) RemoveTree(folder_);
  }
  StagingGuard(const StagingGuard&) = delete;
  StagingGuard& operator=(const StagingGuard&) = delete;
  void Published() { folder_.clear(); }

 private:
  fs::path folder_;
};

uint64_t SpaceNeeded(const CheckpointLayout& layout) {
  uint64_t bytes = kOwnFilesBytes;
  for (const CheckpointFile& file : layout.files) {
    bytes += (file.bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    bytes +=
        HashChunksOf(file.bytes) * (1 + kListedChunkBytes) + 2 * file.name.size() + kListedBytes;
  }
  return bytes;
}

std::vector<FileStamp> StampsOf(const CheckpointLayout& layout) {
  std::vector<FileStamp> stamps;
  for (const CheckpointFile& file : layout.files) {
    stamps.push_back(StampFile(layout.folder, file.name));
  }
  return stamps;
}

// Checks that the written files are a complete checkpoint, the same as the source.
void CheckCopy(const fs::path& folder, const CheckpointLayout& source) {
  const CheckpointLayout written = ReadCheckpointLayout(folder);
  const bool same =
      std::equal(written.files.begin(), written.files.end(), source.files.begin(),
                 source.files.end(), [](const CheckpointFile& a, const CheckpointFile& b) {
                   return a.name == b.name && a.bytes == b.bytes;
                 });
  if (!same) ThrowChanged(source.root);
  CheckShards(written);
}

std::string FingerprintOf(const ReadFolder& folder, const CopyOptions& options,
                          const CopyHooks& hooks) {
  return CopyTree(folder, StampsOf(ReadCheckpointLayout(folder)), {}, options, hooks).fingerprint;
}

}  // namespace

struct Stager::Attempt {
  ReadFolder source;
  const CopyHooks& hooks;
  SourceIdentity identity;
  int64_t begin = MonotonicMicros();
  bool waited = false;
  bool followable = false;  ///< the caller was told

  void TellFollowable(const fs::path& staging) {
    if (followable || !hooks.followable || !LandedReader::Exists(staging)) return;
    followable = true;
    hooks.followable(staging);
  }

  double Seconds() const { return 1e-6 * static_cast<double>(MonotonicMicros() - begin); }
};

namespace {

// The memo's folder. A memo is believed, so a folder that others could write to is not used.
fs::path MemoFolder(const fs::path& state) {
  if (state.empty()) return {};
  try {
    MakePrivateFolder(state, "set state_dir to a folder of your own");
    return state / "staging";
  } catch (const Error& error) {
    log::Warn("staging memo not used: {}", error.what());
    return {};
  }
}

}  // namespace

Stager::Stager(StagerOptions options)
    : options_(std::move(options)),
      root_(options_.root.empty() ? DefaultStagingRoot() : options_.root),
      memo_(MemoFolder(options_.state)) {}

StagedCheckpoint Stager::Stage(const fs::path& source, const CopyHooks& hooks) const {
  Attempt attempt{ReadFolder(source, options_.roots), hooks, {}};
  bool reaped = false;
  while (true) {
    ThrowIfCancelled(hooks.cancel);
    attempt.identity = IdentifySource(attempt.source);
    std::optional<StagedCheckpoint> staged = Reuse(attempt);
    if (!reaped) root_.Reap();
    reaped = true;
    if (staged) return std::move(*staged);
    if (const std::optional<OwnerLock> lock = root_.TryOwn(attempt.identity.id)) {
      // The last owner of the lock may have published since the look above.
      if (std::optional<StagedCheckpoint> other = Reuse(attempt)) return std::move(*other);
      return CopyAndPublish(attempt);
    }
    attempt.waited = true;
    attempt.TellFollowable(root_.StagingFolderOf(attempt.identity.id));
    ShowOther(attempt);
    ::usleep(kOwnerPollMicros);
  }
}

// The record of the last time when that source was staged.
std::optional<StagedRecord> Stager::Known(const std::string& source_id,
                                          const ReadFolder& source) const {
  std::optional<StagedRecord> record = memo_.Find(source_id);
  if (!record) record = root_.FindSource(source_id);
  if (record && !NestedUnchanged(*record, source)) record.reset();
  return record;
}

std::optional<StagedCheckpoint> Stager::Reuse(const Attempt& attempt) const {
  const std::string& id = attempt.identity.id;
  const std::optional<StagedRecord> record = Known(id, attempt.source);
  if (!record) return std::nullopt;
  std::optional<StagedLease> lease = root_.Lease(record->fingerprint);
  if (!lease) return std::nullopt;
  StageReport report;
  report.bytes = record->bytes;
  if (options_.verify) {
    const fs::path folder = root_.FolderOf(record->fingerprint);
    if (FingerprintOf(attempt.source, options_.copy, attempt.hooks) != record->fingerprint) {
      log::Warn("{}: its content changed though its files' stamps did not",
                attempt.source.path().string());
      memo_.Forget(id);
      return std::nullopt;
    }
    if (FingerprintOf(folder, options_.copy, attempt.hooks) != record->fingerprint) {
      *lease = StagedLease();
      if (root_.Drop(record->fingerprint)) return std::nullopt;
      throw Error(ErrorKind::kInfrastructure,
                  folder.string() +
                      ": the staged files have changed since they were staged, and are in use",
                  "end the runs that use them, then stage again");
    }
    report.verified = true;
    report.bytes_read = record->bytes;
  }
  root_.MarkUsed(record->fingerprint);
  report.reused = true;
  report.waited = attempt.waited;
  report.seconds = attempt.Seconds();
  return StagedCheckpoint(root_, record->fingerprint, std::move(*lease), options_.keep_bytes,
                          std::move(report));
}

uint64_t Stager::Droppable() const {
  uint64_t bytes = 0;
  for (const StagedInfo& info : root_.List()) bytes += info.leases == 0 ? info.bytes : 0;
  return bytes;
}

bool Stager::HasSpace(const fs::path& source) const {
  const ReadFolder folder(source, options_.roots);
  const std::optional<StagedRecord> known = Known(IdentifySource(folder).id, folder);
  if (known && root_.RecordOf(known->fingerprint)) return true;
  const uint64_t bytes = SpaceNeeded(ReadCheckpointLayout(folder));
  const std::optional<SpaceLimit> shortage = Shortage(root_.path(), bytes);
  return !shortage || shortage->free + Droppable() >= bytes;
}

void Stager::CheckFits(const fs::path& source) const {
  const uint64_t bytes = SpaceNeeded(ReadCheckpointLayout(ReadFolder(source, options_.roots)));
  for (const SpaceLimit& limit : SpaceIn(root_.path())) {
    if (limit.total >= bytes) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: staging needs {} ({} bytes), and {} is {} in all", source.string(),
                            HumanBytes(bytes), bytes, limit.what, HumanBytes(limit.total)),
                limit.remedy);
  }
}

// Makes space by dropping kept checkpoints without leases.
void Stager::MakeSpace(uint64_t bytes) const {
  while (const std::optional<SpaceLimit> shortage = Shortage(root_.path(), bytes)) {
    if (shortage->free + Droppable() < bytes || !root_.DropLeastRecentlyUsed()) {
      ThrowShortage(*shortage, bytes, root_.path());
    }
  }
}

// Takes the space and copies at the same time: taking space is much faster, and copying mostly
// waits at first.
CopyResult Stager::CopyIntoSpace(const Attempt& attempt, const CheckpointLayout& layout,
                                 std::optional<LandedWriter>* landed) const {
  const fs::path staging = root_.StagingFolderOf(attempt.identity.id);
  const std::vector<FileStamp> files = StampsOf(layout);
  const uint64_t needed = SpaceNeeded(layout);
  SpaceTurn turn(root_.path(), attempt.hooks.cancel);
  MakeSpace(needed);
  MakeTree(files, staging);
  FailPoint("staging.space_taken");
  landed->emplace(staging, layout.files);
  if (attempt.hooks.followable) attempt.hooks.followable(staging);
  Reservation reservation(std::move(turn), files, staging, needed);
  CopyHooks hooks = attempt.hooks;
  hooks.landed = [&](size_t file, uint64_t chunk) {
    (*landed)->Landed(file, chunk);
    if (attempt.hooks.landed) attempt.hooks.landed(file, chunk);
  };
  hooks.progress = [&](uint64_t done, uint64_t total) {
    reservation.Check();
    if (attempt.hooks.progress) attempt.hooks.progress(done, total);
  };
  try {
    const CopyResult result = CopyTree(attempt.source, files, staging, options_.copy, hooks);
    reservation.Finish();
    return result;
  } catch (const Error&) {
    reservation.Check();  // throws the cause and not its consequence
    throw;
  }
}

CopyResult Stager::Copy(const Attempt& attempt, const CheckpointLayout& layout,
                        std::optional<LandedWriter>* landed) const {
  const fs::path staging = root_.StagingFolderOf(attempt.identity.id);
  const CopyResult result = CopyIntoSpace(attempt, layout, landed);
  // The source must not have changed, including files that were not copied.
  if (IdentifySource(attempt.source).id != attempt.identity.id) ThrowChanged(attempt.source.path());
  CheckCopy(staging, layout);
  if (options_.verify &&
      FingerprintOf(staging, options_.copy, attempt.hooks) != result.fingerprint) {
    throw Error(ErrorKind::kInfrastructure,
                staging.string() + ": what was written reads back as something else",
                "check this host's memory, or the disk of staging.root");
  }
  return result;
}

StagedCheckpoint Stager::CopyAndPublish(const Attempt& attempt) const {
  const CheckpointLayout layout = ReadCheckpointLayout(attempt.source);
  CheckShards(layout);
  const fs::path staging = root_.StagingFolderOf(attempt.identity.id);
  StagingGuard guard(staging);
  FailPoint("staging.owned");
  // Destroyed before the folder is removed, so that followers learn the reason
  std::optional<LandedWriter> landed;
  const CopyResult result = Copy(attempt, layout, &landed);
  landed->Hide();
  FailPoint("staging.copied");

  StagedRecord record;
  record.fingerprint = result.fingerprint;
  record.source = fs::weakly_canonical(attempt.source.path()).string();
  record.source_id = attempt.identity.id;
  for (const FileStamp& stamp : StampsOf(layout)) {
    if (stamp.name.find('/') != std::string::npos) record.nested.push_back(stamp);
  }
  record.bytes = layout.total_bytes;
  record.staged_at = WallSeconds();
  WriteChunkList(staging, result.files);
  // Written before the folder has its name: a process that sees the folder finds the memo, too.
  memo_.Store(record);
  FailPoint("staging.memo_written");
  StagedLease lease = root_.Publish(staging, record);
  landed->Publish(record.fingerprint);
  guard.Published();
  FailPoint("staging.leased");

  StageReport report;
  report.bytes = layout.total_bytes;
  report.bytes_read = result.bytes_read;
  report.bytes_direct = result.bytes_direct;
  report.waited = attempt.waited;
  report.verified = options_.verify;
  report.threads = result.threads;
  report.seconds = attempt.Seconds();
  report.skipped = layout.skipped;
  return StagedCheckpoint(root_, record.fingerprint, std::move(lease), options_.keep_bytes,
                          std::move(report));
}

// Shows another process's progress from the data in its files, which have their final lengths from
// the start.
void Stager::ShowOther(const Attempt& attempt) const {
  if (!attempt.hooks.progress) return;
  uint64_t done = 0, total = 0;
  std::error_code error;
  const fs::path staging = root_.StagingFolderOf(attempt.identity.id);
  for (auto it = fs::recursive_directory_iterator(staging, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    struct stat info{};
    if (::lstat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const auto bytes = static_cast<uint64_t>(info.st_size);
    total += bytes;
    done += BytesWritten(it->path());
  }
  if (total > 0) attempt.hooks.progress(done, total);
}

std::vector<StagedInfo> ListStaged(const fs::path& root) {
  const fs::path path = root.empty() ? DefaultStagingRoot() : root;
  if (!fs::exists(path)) return {};
  return StagingRoot(path).List();
}

DropResult DropStaged(const fs::path& root, const std::string& which) {
  DropResult result;
  const fs::path path = root.empty() ? DefaultStagingRoot() : root;
  std::vector<std::string> chosen;
  for (const StagedInfo& info : ListStaged(path)) {
    const bool named = !which.empty() && info.fingerprint.starts_with(which);
    if (which == "all" || named) chosen.push_back(info.fingerprint);
  }
  if (which != "all" && chosen.size() != 1) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: found {} staged checkpoints whose fingerprint begins with '{}', "
                            "expected one",
                            path.string(), chosen.size(), which),
                "see evald stage --list");
  }
  if (!fs::exists(path)) return result;
  const StagingRoot staging_root(path);
  for (const std::string& fingerprint : chosen) {
    (staging_root.Drop(fingerprint) ? result.dropped : result.leased).push_back(fingerprint);
  }
  if (which == "all") staging_root.Reap();
  return result;
}

}  // namespace evald
