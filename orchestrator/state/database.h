#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace evald {

/// A prepared SQL statement. Used as: bind in order, Step, read columns. Not thread-safe.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql);

  Statement& Bind(int64_t value);
  Statement& Bind(double value);
  Statement& Bind(std::string_view value);
  /// True when there is a row. Throws Error(kInfrastructure).
  bool Step();
  /// Steps to the end, then resets for the next use.
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

/// A SQLite database in WAL mode with synchronous=FULL: what is committed survives power loss. One
/// thread at a time. Refuses a network file system, where SQLite's locks do not hold.
class Database {
 public:
  /// Opens or creates `file`. Throws Error(kInfrastructure) that names the file.
  explicit Database(const std::filesystem::path& file);

  Statement Prepare(std::string_view sql) { return Statement(handle_.get(), sql); }
  void Execute(const std::string& sql);
  /// Runs `body` in one transaction: committed when it returns, rolled back when it throws.
  void Transaction(const std::function<void()>& body);

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace evald
