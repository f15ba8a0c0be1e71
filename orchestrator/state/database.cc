#include "orchestrator/state/database.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

#include "base/fail_point.h"
#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr int kBusyTimeoutMs = 10'000;
constexpr unsigned long kCifsMagic = 0xFF534D42;
constexpr unsigned long kSmb2Magic = 0xFE534D42;
constexpr unsigned long kLustreMagic = 0x0BD00BD0;
constexpr unsigned long kGpfsMagic = 0x47504653;
constexpr unsigned long kCephMagic = 0x00C36400;

// The beginning of a statement is enough to tell what failed.
constexpr size_t kStatementShown = 60;

[[noreturn]] void Throw(sqlite3* database, const std::string& doing) {
  if (database == nullptr) throw Error(ErrorKind::kInfrastructure, doing + ": out of memory");
  const int code = sqlite3_errcode(database) & 0xff;
  const int error_number = sqlite3_system_errno(database);
  const char* file = sqlite3_db_filename(database, "main");  // null if it could not be opened
  std::string what = fmt::format("state database {}: {}: {}", file == nullptr ? "" : file,
                                 Shortened(doing, kStatementShown), sqlite3_errmsg(database));
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) throw DatabaseDamaged(what);
  const bool io = code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
  if (io && error_number != 0) what += fmt::format(" ({})", std::strerror(error_number));
  const bool full =
      code == SQLITE_FULL || (io && (error_number == ENOSPC || error_number == EDQUOT));
  throw Error(ErrorKind::kInfrastructure, what,
              full ? "free some space, or set state_dir to a folder on another disk"
              : io ? "check the disk that state_dir lies on"
                   : "");
}

void RefuseNetworkFileSystem(const std::filesystem::path& directory) {
  struct statfs info{};
  if (::statfs(directory.c_str(), &info) != 0) ThrowErrno(directory, "statfs", errno);
  const auto type = static_cast<unsigned long>(info.f_type) & 0xFFFFFFFFul;
  for (const unsigned long network : {static_cast<unsigned long>(NFS_SUPER_MAGIC), kCifsMagic,
                                      kSmb2Magic, kLustreMagic, kGpfsMagic, kCephMagic}) {
    if (type == network) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: the state folder lies on a network file system, where the "
                              "database's locks do not hold",
                              directory.string()),
                  "set state_dir to a folder on this machine's own disk");
    }
  }
}

}  // namespace

Statement::Statement(sqlite3* database, std::string_view sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr) !=
      SQLITE_OK) {
    Throw(database, std::string(sql));
  }
  statement_.reset(statement);
}

Statement& Statement::Bind(int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(double value) {
  sqlite3_bind_double(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(std::string_view value) {
  sqlite3_bind_text(statement_.get(), ++bound_, value.data(), static_cast<int>(value.size()),
                    SQLITE_TRANSIENT);
  return *this;
}

bool Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const std::string doing = sqlite3_sql(statement_.get());
  Throw(database_, doing);
}

void Statement::Run() {
  while (Step()) {
  }
  Reset();
}

void Statement::Reset() {
  if (sqlite3_reset(statement_.get()) != SQLITE_OK) Throw(database_, sqlite3_sql(statement_.get()));
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
}

int64_t Statement::Integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
double Statement::Real(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::string Statement::Text(int column) const {
  const auto* text = sqlite3_column_text(statement_.get(), column);
  return text == nullptr
             ? ""
             : std::string(reinterpret_cast<const char*>(text),
                           static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

Database::Database(const std::filesystem::path& file) : file_(file) {
  MakeDirectories(file.parent_path());
  RefuseNetworkFileSystem(file.parent_path());
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &handle,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) {
    const int error_number = handle == nullptr ? ENOMEM : sqlite3_system_errno(handle);
    ThrowErrno(file, "open the state database", error_number == 0 ? EIO : error_number);
  }
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  Execute("PRAGMA journal_mode=WAL");
  Execute("PRAGMA synchronous=FULL");
  Execute("PRAGMA foreign_keys=ON");
}

Database Database::InMemory() {
  Database database;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open(":memory:", &handle);
  database.handle_.reset(handle);
  if (code != SQLITE_OK) Throw(handle, "open a database in memory");
  return database;
}

void Database::Execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    Throw(handle_.get(), sql);
  }
}

void Database::Transaction(const std::function<void()>& body) {
  Execute("BEGIN IMMEDIATE");
  try {
    body();
    FailPoint("database.before_commit");
    Execute("COMMIT");
    FailPoint("database.after_commit");
  } catch (...) {
    sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

}  // namespace evald
