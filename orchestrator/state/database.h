#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "evald/error.h"

namespace evald {

/// The file is not the database that was written: SQLite found it malformed.
class DatabaseDamaged : public Error {
 public:
  explicit DatabaseDamaged(std::string message)
      : Error(ErrorKind::kInfrastructure, std::move(message),
              "start evald again: a damaged database is set aside and filled again from the runs' "
              "folders") {}
};

/// A prepared SQL statement. Bind the parameters in order, call Step, read the columns. Not
/// thread-safe.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql);

  Statement& Bind(int64_t value);
  Statement& Bind(double value);
  Statement& Bind(std::string_view value);
  /// True if there is a row. Throws Error(kInfrastructure); DatabaseDamaged is one of them.
  bool Step();
  /// Steps to the end, then resets the statement for its next use.
  void Run();
  void Reset();

  int64_t Integer(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

/// A SQLite database in WAL mode with synchronous=FULL, so committed rows survive power loss. One
/// thread at a time. Refuses a network file system: SQLite's locks do not hold there.
class Database {
 public:
  /// Opens or creates `file`. Throws Error(kInfrastructure), which names the file; DatabaseDamaged
  /// if the file is no database.
  explicit Database(const std::filesystem::path& file);
  /// An empty database in memory.
  static Database InMemory();

  Statement Prepare(std::string_view sql) { return Statement(handle_.get(), sql); }
  void Execute(const std::string& sql);
  /// Rows that the last statement changed.
  int64_t changes() const { return sqlite3_changes(handle_.get()); }
  /// Runs `body` in one transaction. The transaction is committed if `body` returns, and rolled
  /// back if it throws.
  void Transaction(const std::function<void()>& body);

 private:
  Database() = default;

  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace evald
