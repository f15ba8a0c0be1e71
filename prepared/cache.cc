#include "prepared/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

#include "base/own_folder.h"
#include "base/random_id.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTasks = "prepared";
constexpr const char* kUses = "uses";
constexpr const char* kLock = ".lock";
// Nothing with this prefix is ever read as a prepared task.
constexpr std::string_view kRemoved = ".removed-";
// The part of the bound that is freed when the bound is passed, and the part that may be added
// before the cache is measured again.
constexpr uint64_t kFreed = 16;
constexpr uint64_t kUnmeasured = 64;

using Keys = std::set<std::string, std::less<>>;

bool Flock(const UniqueFd& fd, int how, const fs::path& path) {
  while (::flock(fd.get(), how) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno == EINTR) continue;
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: flock: {}", path.string(), std::strerror(errno)),
                "set cache_dir to a folder on a disk of this machine");
  }
  return true;
}

// Held while lists of uses are made, written and read, and while tasks are renamed away. It is
// never held while a cache is measured or files are deleted.
UniqueFd LockCache(const fs::path& cache_dir) {
  const fs::path path = cache_dir / kUses / kLock;
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) ThrowErrno(path, "open", errno);
  Flock(fd, LOCK_EX, path);
  return fd;
}

// A folder in the cache: a task, or what a killed process has left of one.
struct Entry {
  std::string name;
  bool half = false;  // a task that is being written, or was
  uint64_t bytes = 0;
  int64_t used_ns = 0;  // the last use
};

std::string KeyOf(const Entry& entry) { return entry.name.substr(0, entry.name.find('.')); }

// On the disk. A file that is gone has none.
uint64_t BytesOfFile(const fs::path& file) {
  struct stat status{};
  if (::lstat(file.c_str(), &status) != 0) return 0;
  return std::max(static_cast<uint64_t>(status.st_size),
                  static_cast<uint64_t>(status.st_blocks) * 512);
}

uint64_t BytesOf(const fs::path& folder) {
  uint64_t bytes = BytesOfFile(folder);
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    bytes += BytesOfFile(at->path());
  }
  return bytes;
}

struct Measured {
  std::vector<Entry> entries;
  std::vector<fs::path> removed;  // their removal was begun, and may have been cut short
  uint64_t bytes = 0;             // of `entries`
};

Measured Measure(const fs::path& tasks) {
  Measured measured;
  std::error_code error;
  for (fs::directory_iterator at(tasks, error), end; !error && at != end; at.increment(error)) {
    Entry entry;
    entry.name = at->path().filename().string();
    if (entry.name.starts_with(kRemoved)) {
      measured.removed.push_back(at->path());
      continue;
    }
    struct stat status{};
    if (::lstat(at->path().c_str(), &status) != 0) continue;
    entry.half = entry.name.find('.') != std::string::npos;
    entry.bytes = BytesOf(at->path());
    entry.used_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    measured.bytes += entry.bytes;
    measured.entries.push_back(std::move(entry));
  }
  return measured;
}

Keys KeysIn(const std::string& list) {
  std::istringstream lines(list);
  Keys keys;
  for (std::string line; std::getline(lines, line);) keys.insert(line);
  return keys;
}

// Call it with the cache locked. Lists of processes that have ended are removed.
Keys KeysInUse(const fs::path& cache_dir) {
  Keys keys;
  std::error_code error;
  for (fs::directory_iterator at(cache_dir / kUses, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename() == kLock) continue;
    const UniqueFd fd(::open(at->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) continue;  // its run has just ended
    if (Flock(fd, LOCK_EX | LOCK_NB, at->path())) {
      ::unlink(at->path().c_str());
    } else {
      keys.merge(KeysIn(ReadFile(fd, at->path())));  // its run may remove the list meanwhile
    }
  }
  if (error) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("{}: read the folder: {}", (cache_dir / kUses).string(), error.message()));
  }
  return keys;
}

// The new name, or "" if the folder is gone.
fs::path RenameAway(const fs::path& folder) {
  fs::path away = folder.parent_path() / (std::string(kRemoved) + RandomId());
  if (::rename(folder.c_str(), away.c_str()) == 0) return away;
  if (errno != ENOENT) ThrowErrno(folder, "rename", errno);
  return {};
}

// Files that cannot be deleted now are deleted by the next process that makes room.
void Delete(const std::vector<fs::path>& folders) {
  std::error_code ignored;
  for (const fs::path& folder : folders) fs::remove_all(folder, ignored);
}

uint64_t BytesOf(const std::vector<Entry>& entries, const Keys& keys) {
  uint64_t bytes = 0;
  for (const Entry& entry : entries) {
    if (keys.contains(KeyOf(entry))) bytes += entry.bytes;
  }
  return bytes;
}

// Half-written tasks before whole ones, then by last use.
void SortByWorth(std::vector<Entry>* entries) {
  std::sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) {
    return std::tuple(!a.half, a.used_ns, a.name) < std::tuple(!b.half, b.used_ns, b.name);
  });
}

Error Full(const fs::path& cache_dir, std::string_view task, uint64_t bytes, uint64_t own,
           uint64_t most) {
  const fs::path tasks = cache_dir / kTasks;
  if (own > most) {
    return {ErrorKind::kInput,
            fmt::format("task '{}': with this task the run's prepared tasks take {}, and all "
                        "prepared tasks in {} together may take {}",
                        task, HumanBytes(own), tasks.string(), HumanBytes(most)),
            "use fewer documents or tasks, or raise 'cache_limit'"};
  }
  return {ErrorKind::kInfrastructure,
          fmt::format("task '{}': the prepared tasks of this run ({}) and of other runs at work or "
                      "paused take {} in {}, and may take {}",
                      task, HumanBytes(own), HumanBytes(bytes), tasks.string(), HumanBytes(most)),
          "try again when other runs are over, or raise 'cache_limit'"};
}

}  // namespace

void MakePreparedCache(const fs::path& cache_dir) {
  constexpr const char* kRemedy = "set cache_dir to a folder of your own";
  MakePrivateFolder(cache_dir, kRemedy);
  MakeOwnFolder(cache_dir / kTasks, kRemedy);
  MakeOwnFolder(cache_dir / kUses, kRemedy);
}

PreparedUse::PreparedUse(const fs::path& cache_dir) {
  MakePreparedCache(cache_dir);
  const UniqueFd lock = LockCache(cache_dir);
  KeysInUse(cache_dir);  // removes lists of processes that were killed
  file_ = cache_dir / kUses / RandomId();
  lock_ = UniqueFd(::open(file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock_) ThrowErrno(file_, "open", errno);
  Flock(lock_, LOCK_EX, file_);
}

PreparedUse::~PreparedUse() { ::unlink(file_.c_str()); }

CacheKeeper::CacheKeeper(fs::path cache_dir, fs::path use, uint64_t bytes_max)
    : cache_dir_(std::move(cache_dir)), use_(std::move(use)), bytes_max_(bytes_max) {}

void CacheKeeper::Hold(const std::string& key) {
  if (use_.empty()) return;
  const UniqueFd lock = LockCache(cache_dir_);
  const UniqueFd fd(::open(use_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) ThrowErrno(use_, "open", errno);
  const std::string line = key + "\n";
  const ssize_t written = ::write(fd.get(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size()))
    ThrowErrno(use_, "write", written < 0 ? errno : ENOSPC);
  ::utimensat(AT_FDCWD, (cache_dir_ / kTasks / key).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void CacheKeeper::MakeSpace(const std::string& key, std::string_view task) {
  const fs::path tasks = cache_dir_ / kTasks;
  if (looked_) {
    const uint64_t bytes = BytesOf(tasks / key);
    bytes_ += bytes;
    bytes_since_ += bytes;
    if (bytes_ <= bytes_max_ && bytes_since_ <= bytes_max_ / kUnmeasured) return;
  }
  Measured measured = Measure(tasks);
  looked_ = true;
  bytes_ = measured.bytes;
  bytes_since_ = 0;
  uint64_t own = 0;
  if (bytes_ > bytes_max_) {
    const UniqueFd lock = LockCache(cache_dir_);
    const Keys used = KeysInUse(cache_dir_);
    if (!use_.empty()) own = BytesOf(measured.entries, KeysIn(ReadFile(use_)));
    SortByWorth(&measured.entries);
    for (const Entry& entry : measured.entries) {
      if (bytes_ <= bytes_max_ - bytes_max_ / kFreed) break;
      if (used.contains(KeyOf(entry)) || entry.name == key) continue;
      const fs::path away = RenameAway(tasks / entry.name);
      if (!away.empty()) measured.removed.push_back(away);
      bytes_ -= entry.bytes;
    }
  }
  Delete(measured.removed);
  if (bytes_ > bytes_max_) throw Full(cache_dir_, task, bytes_, own, bytes_max_);
}

void RemovePrepared(const fs::path& folder) {
  const fs::path away = RenameAway(folder);
  if (!away.empty()) Delete({away});
}

}  // namespace evald
