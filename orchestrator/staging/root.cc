#include "orchestrator/staging/root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/fail_point.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/text.h"
#include "evald/error.h"
#include "orchestrator/staging/fingerprint.h"
#include "orchestrator/staging/free_space.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRecordFile = ".evald-staged.json";
constexpr const char* kOwnPrefix = ".evald-";  // files that are no part of the checkpoint
constexpr const char* kStagingPrefix = ".staging-";
constexpr const char* kDroppedPrefix = ".dropped-";
constexpr const char* kKeptPrefix = ".kept-";
constexpr const char* kLockSuffix = ".lock";

std::vector<std::string> EntriesOf(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Sets the modes of a published folder. If the root is no tmpfs, the content must also reach the
// disk before the folder gets its final name.
void Seal(const fs::path& folder, bool sync) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const bool is_folder = entry.is_directory();
    const UniqueFd fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) ThrowErrno(entry.path(), "open", errno);
    if (sync && ::fsync(fd.get()) != 0) ThrowErrno(entry.path(), "fsync", errno);
    if (::fchmod(fd.get(), is_folder ? 0555 : 0444) != 0) ThrowErrno(entry.path(), "chmod", errno);
  }
  if (::chmod(folder.c_str(), 0555) != 0) ThrowErrno(folder, "chmod", errno);
  if (sync) FsyncDirectory(folder);
}

void PutFile(const fs::path& path, std::string_view content) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) ThrowErrno(path, "create", errno);
  if (::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    ThrowErrno(path, "write", errno);
  }
}

// Counts shared flocks on the inode, from lines such as "12: FLOCK  ADVISORY  READ 4711 00:1b:42 0
// EOF" (proc(5), /proc/locks).
int LeasesOn(const struct stat& info) {
  const std::string inode = fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev),
                                        static_cast<uint64_t>(info.st_ino));
  int count = 0;
  try {
    for (const std::string& line : Split(ReadFile("/proc/locks"), '\n')) {
      if (line.find(" FLOCK ") != std::string::npos && line.find(" READ ") != std::string::npos &&
          line.find(" " + inode + " ") != std::string::npos) {
        ++count;
      }
    }
  } catch (const Error&) {
  }
  return count;
}

// The damage to a staged folder that lengths show; "" for none. Files may have been cut short or
// removed since, by hand or by a disk that lost power.
std::string DamageOf(const fs::path& folder, const std::optional<StagedRecord>& record) {
  if (!record) return "its record is gone";
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    struct stat info{};
    if (::lstat(it->path().c_str(), &info) != 0)
      return it->path().string() + ": " + std::strerror(errno);
    const bool own = it.depth() == 0 && it->path().filename().string().starts_with(kOwnPrefix);
    if (S_ISREG(info.st_mode) && !own) bytes += static_cast<uint64_t>(info.st_size);
  }
  if (error) return error.message();
  return bytes == record->bytes
             ? ""
             : fmt::format("its files have {} bytes, expected {}", bytes, record->bytes);
}

bool TryLockExclusive(int fd) {
  // Another process that looks at the lease (List, Reap) takes the lock for an instant.
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (attempt + 1 < kAttempts) ::usleep(3'000);
  }
  return false;
}

}  // namespace

fs::path DefaultStagingRoot() { return fmt::format("/dev/shm/evald-{}", ::geteuid()); }

Json ToJson(const StagedInfo& info) {
  return {{"fingerprint", info.fingerprint}, {"source", info.source}, {"bytes", info.bytes},
          {"last_used", info.last_used},     {"leases", info.leases}, {"kept", info.kept}};
}

void RemoveTree(const fs::path& path) {
  std::error_code error;
  ::chmod(path.c_str(), 0700);
  for (auto it = fs::recursive_directory_iterator(path, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) ::chmod(it->path().c_str(), 0700);
  }
  error.clear();
  fs::remove_all(path, error);
  if (error && fs::exists(fs::symlink_status(path))) {
    log::Warn("{}: could not be removed: {}", path.string(), error.message());
  }
}

StagingRoot::StagingRoot(fs::path path) : path_(std::move(path)) {
  if (!path_.has_filename()) path_ = path_.parent_path();
  MakeOwnFolder(path_, "set staging.root to a folder of your own");
}

fs::path StagingRoot::StagingFolderOf(const std::string& source_id) const {
  return path_ / (kStagingPrefix + source_id);
}

fs::path StagingRoot::KeptFileOf(const std::string& fingerprint) const {
  return path_ / (kKeptPrefix + fingerprint);
}

std::optional<OwnerLock> StagingRoot::TryOwn(const std::string& source_id) const {
  const fs::path staging = StagingFolderOf(source_id);
  std::optional<OwnerLock> lock = OwnerLock::Try(staging.string() + kLockSuffix);
  if (lock && fs::exists(fs::symlink_status(staging))) RemoveTree(staging);
  return lock;
}

StagedLease StagingRoot::Publish(const fs::path& staging, const StagedRecord& record) const {
  PutFile(staging / kRecordFile, ToLine(ToJson(record)) + "\n");
  PutFile(staging / kLeaseFile, "");
  Seal(staging, !IsTmpfs(path_));
  FailPoint("staging.sealed");
  // The folder is leased before it has a name under which it could be dropped.
  StagedLease lease(staging);
  const fs::path folder = FolderOf(record.fingerprint);
  while (true) {
    if (!fs::exists(folder)) ::unlink(KeptFileOf(record.fingerprint).c_str());
    if (::rename(staging.c_str(), folder.c_str()) == 0) break;
    if (errno != EEXIST && errno != ENOTEMPTY) ThrowErrno(folder, "rename", errno);
    if (std::optional<StagedLease> other = Lease(record.fingerprint)) {
      RemoveTree(staging);
      return std::move(*other);
    }
    // The folder is either just being dropped, or remains without a lease file.
    if (!fs::exists(folder / kLeaseFile)) RemoveTree(folder);
    ::usleep(2'000);
  }
  FailPoint("staging.renamed");
  if (!IsTmpfs(path_)) FsyncDirectory(path_);
  return lease;
}

std::optional<StagedLease> StagingRoot::Lease(const std::string& fingerprint) const {
  const fs::path folder = FolderOf(fingerprint);
  if (!fs::is_directory(folder)) return std::nullopt;
  StagedLease lease;
  try {
    lease = StagedLease(folder);
  } catch (const Error& error) {
    log::Debug("not leased: {}", error.what());
  }
  if (!lease.held()) return std::nullopt;
  const std::string damage = DamageOf(folder, RecordOf(fingerprint));
  if (damage.empty()) return lease;
  lease = StagedLease();
  if (!Drop(fingerprint)) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("{}: the staged copy is damaged ({}), and in use", folder.string(), damage),
        "end the runs that use it, then stage the checkpoint again");
  }
  log::Warn("{}: the staged copy is damaged ({}); it is dropped, and staged again", folder.string(),
            damage);
  return std::nullopt;
}

std::optional<StagedRecord> StagingRoot::RecordOf(const std::string& fingerprint) const {
  const fs::path path = FolderOf(fingerprint) / kRecordFile;
  try {
    return RecordFromJson(ParseJson(ReadFile(path), path.string()), path.string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::string> StagingRoot::Fingerprints() const {
  std::vector<std::string> names = EntriesOf(path_);
  std::erase_if(names, [](const std::string& name) { return !IsFingerprint(name); });
  return names;
}

std::optional<StagedRecord> StagingRoot::FindSource(const std::string& source_id) const {
  for (const std::string& fingerprint : Fingerprints()) {
    std::optional<StagedRecord> record = RecordOf(fingerprint);
    if (record && record->source_id == source_id) return record;
  }
  return std::nullopt;
}

std::vector<StagedInfo> StagingRoot::List() const {
  std::vector<StagedInfo> all;
  for (const std::string& fingerprint : Fingerprints()) {
    struct stat info{};
    if (::stat((FolderOf(fingerprint) / kLeaseFile).c_str(), &info) != 0) continue;
    const StagedRecord record = RecordOf(fingerprint).value_or(StagedRecord{});
    all.push_back({fingerprint, record.source, record.bytes,
                   static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * info.st_mtim.tv_nsec,
                   LeasesOn(info), IsKept(fingerprint)});
  }
  std::stable_sort(all.begin(), all.end(), [](const StagedInfo& a, const StagedInfo& b) {
    return a.last_used < b.last_used;
  });
  return all;
}

bool StagingRoot::Drop(const std::string& fingerprint) const {
  if (!IsFingerprint(fingerprint)) return false;
  const fs::path folder = FolderOf(fingerprint);
  UniqueFd fd(::open((folder / kLeaseFile).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || !TryLockExclusive(fd.get())) return false;
  if (!StillNamed(fd.get(), folder / kLeaseFile)) return false;
  static std::atomic<int> counter{0};
  const fs::path away =
      path_ / fmt::format("{}{}-{}-{}", kDroppedPrefix, fingerprint, ::getpid(), counter++);
  if (::rename(folder.c_str(), away.c_str()) != 0) ThrowErrno(folder, "rename", errno);
  ::unlink(KeptFileOf(fingerprint).c_str());
  FailPoint("staging.dropped");
  fd.reset();
  RemoveTree(away);
  return true;
}

void StagingRoot::MarkUsed(const std::string& fingerprint) const {
  ::utimensat(AT_FDCWD, (FolderOf(fingerprint) / kLeaseFile).c_str(), nullptr, 0);
}

void StagingRoot::Keep(const std::string& fingerprint) const {
  PutFile(KeptFileOf(fingerprint), "");
  MarkUsed(fingerprint);
}

bool StagingRoot::IsKept(const std::string& fingerprint) const {
  return fs::exists(KeptFileOf(fingerprint));
}

void StagingRoot::ShrinkKept(uint64_t budget) const {
  std::vector<StagedInfo> kept = List();
  std::erase_if(kept, [](const StagedInfo& info) { return !info.kept || info.leases > 0; });
  uint64_t held = 0;
  for (const StagedInfo& info : kept) held += info.bytes;
  for (const StagedInfo& info : kept) {
    if (held <= budget) return;
    if (Drop(info.fingerprint)) held -= info.bytes;
  }
}

bool StagingRoot::DropLeastRecentlyUsed() const {
  for (const StagedInfo& info : List()) {
    if (info.leases == 0 && Drop(info.fingerprint)) return true;
  }
  return false;
}

void StagingRoot::Reap() const {
  for (const std::string& name : EntriesOf(path_)) {
    if (name.starts_with(kDroppedPrefix)) {
      RemoveTree(path_ / name);
    } else if (name.starts_with(kStagingPrefix)) {
      std::string source_id = name.substr(std::strlen(kStagingPrefix));
      if (source_id.ends_with(kLockSuffix)) {
        source_id.resize(source_id.size() - std::strlen(kLockSuffix));
      }
      TryOwn(source_id);
    } else if (name.starts_with(kKeptPrefix)) {
      if (!fs::exists(path_ / name.substr(std::strlen(kKeptPrefix))))
        ::unlink((path_ / name).c_str());
    } else if (IsFingerprint(name) && !fs::exists(path_ / name / kLeaseFile)) {
      RemoveTree(path_ / name);
    } else if (IsFingerprint(name) && !IsKept(name)) {
      Drop(name);
    }
  }
}

}  // namespace evald
