#include "orchestrator/state/sound_database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fail_point.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kName = "state.db";
// Checking reads the whole file: all of it, with the order of its rows, up to the first size; its
// structure up to the second; beyond, damage is found when a page is read.
constexpr uintmax_t kIntegrityBytesMax = 64ull << 20;
constexpr uintmax_t kQuickBytesMax = 1ull << 30;

UniqueFd LockShared(const fs::path& state_dir) {
  MakePrivateFolder(state_dir, "set state_dir to a folder of your own");
  const fs::path file = state_dir / "state.lock";
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) ThrowErrno(file, "open", errno);
  while (::flock(lock.get(), LOCK_SH) != 0) {  // held exclusively only while files are renamed
    if (errno != EINTR) ThrowErrno(file, "flock", errno);
  }
  return lock;
}

// Numbers in the header that SQLite takes for those of a newer format, which it may not write to,
// and not for damage (https://www.sqlite.org/fileformat.html, 1.3): write and read version, schema
// format. Not while the database is open: to close any descriptor of it gives up SQLite's locks.
void CheckHeader(const fs::path& file) {
  constexpr int kVersionMax = 2, kSchemaFormatMax = 4;
  std::array<unsigned char, 100> header{};
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd ||
      ::pread(fd.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()))
    return;
  if (header[18] > kVersionMax || header[19] > kVersionMax || header[47] > kSchemaFormatMax) {
    throw DatabaseDamaged(
        fmt::format("state database {}: the header names an unknown format", file.string()));
  }
}

Database OpenAndCheck(const fs::path& file, const std::function<void(Database&)>& migrate) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(file, error);
  CheckHeader(file);
  Database database(file);
  if (!error && bytes > 0 && bytes <= kQuickBytesMax) {
    const char* check =
        bytes <= kIntegrityBytesMax ? "PRAGMA integrity_check(1)" : "PRAGMA quick_check(1)";
    Statement found = database.Prepare(check);
    if (!found.Step() || found.Text(0) != "ok") {
      throw DatabaseDamaged(fmt::format("state database {}: {}", file.string(), found.Text(0)));
    }
  }
  migrate(database);
  return database;
}

fs::path FreeName(const fs::path& file) {
  for (int n = 1;; ++n) {
    const fs::path name = fmt::format("{}.damaged-{}", file.string(), n);
    if (!fs::exists(name) && !fs::exists(name.string() + "-wal")) return name;
  }
}

void RenameIfThere(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT) ThrowErrno(from, "rename", errno);
}

// The WAL goes first: the frames of a damaged database must never meet the fresh one.
fs::path SetAside(const fs::path& file) {
  const fs::path away = FreeName(file);
  RenameIfThere(file.string() + "-wal", away.string() + "-wal");
  ::unlink((file.string() + "-shm").c_str());
  FailPoint("database.wal_set_aside");
  RenameIfThere(file, away);
  FsyncDirectory(file.parent_path());
  FailPoint("database.set_aside");
  return away;
}

}  // namespace

SoundDatabase OpenSoundDatabase(const fs::path& state_dir,
                                const std::function<void(Database&)>& migrate) {
  const fs::path file = state_dir / kName;
  UniqueFd lock = LockShared(state_dir);
  try {
    Database database = OpenAndCheck(file, migrate);
    return {std::move(lock), std::move(database), {}};
  } catch (const DatabaseDamaged& damage) {
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{}; another evald uses this state folder", damage.message()),
                  "stop it, then start again: the database is set aside and filled again from the "
                  "runs' folders");
    }
  }
  fs::path away;
  try {  // whoever had the lock before may have done it
    Database database = OpenAndCheck(file, migrate);
    ::flock(lock.get(), LOCK_SH);
    return {std::move(lock), std::move(database), {}};
  } catch (const DatabaseDamaged& damage) {
    away = SetAside(file);
    log::Warn("{}; it is set aside as {}, and what counts is found again in the runs' folders",
              damage.message(), away.string());
  }
  Database database = OpenAndCheck(file, migrate);
  ::flock(lock.get(), LOCK_SH);
  return {std::move(lock), std::move(database), std::move(away)};
}

}  // namespace evald
