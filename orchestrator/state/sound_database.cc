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
// A check reads the whole file. Files up to the first size are checked completely, with the order
// of their rows. Files up to the second size have only their structure checked. In larger files,
// damage is found when a page is read.
constexpr uintmax_t kIntegrityBytesMax = 64ull << 20;
constexpr uintmax_t kQuickBytesMax = 1ull << 30;

UniqueFd LockShared(const fs::path& state_dir) {
  MakePrivateFolder(state_dir, "set state_dir to a folder of your own");
  const fs::path file = state_dir / "state.lock";
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) ThrowErrno(file, "open", errno);
  // Another process holds it exclusively only while it checks and replaces a damaged database.
  while (::flock(lock.get(), LOCK_SH) != 0) {
    if (errno != EINTR) ThrowErrno(file, "flock", errno);
  }
  return lock;
}

// Checks the numbers in the header (write and read version, schema format). A damaged number looks
// to SQLite like a newer format to which it may not write, and not like damage
// (https://www.sqlite.org/fileformat.html, 1.3). Call it only before the database is open: closing
// any descriptor of the file would release SQLite's locks.
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

// The WAL is renamed first: the frames of a damaged database must never meet the fresh one.
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
  try {  // an earlier holder of the lock may have replaced the database
    Database database = OpenAndCheck(file, migrate);
    ::flock(lock.get(), LOCK_SH);
    return {std::move(lock), std::move(database), {}};
  } catch (const DatabaseDamaged& damage) {
    away = SetAside(file);
    log::Warn("{}; it is set aside as {}, and a new one is filled from the runs' folders",
              damage.message(), away.string());
  }
  Database database = OpenAndCheck(file, migrate);
  ::flock(lock.get(), LOCK_SH);
  return {std::move(lock), std::move(database), std::move(away)};
}

}  // namespace evald
