// SQLite without its function fts3_tokenizer.
//
// `select fts3_tokenizer(name, ?)` takes a blob as the address of a table of functions, which
// full-text search then calls: a program could do with it what ctypes can do. SQLite's own switch
// against it (SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER) lets parameters through. Here the function is
// replaced in each connection when it is opened (sqlite3_auto_extension,
// https://sqlite.org/c3ref/auto_extension.html), after SQLite has registered its own. The
// replacement has the same name, number of arguments and encoding, so the original is gone. A
// program that removes the replacement, with `create_function(name, 2, None)`, has no such function
// at all.

#include <dlfcn.h>

#include "metrics/sandbox/guest/guest.h"

namespace evald::guest {
namespace {

// Parts of SQLite's stable interface (sqlite3.h).
constexpr int kSqliteOk = 0;
constexpr int kSqliteUtf8 = 1;
using SqlFunction = void (*)(void* context, int count, void** values);

struct Sqlite {
  int (*auto_extension)(void (*entry)());
  int (*create_function)(void* connection, const char* name, int arguments, int encoding,
                         void* data, SqlFunction call, SqlFunction step, void (*final)(void*));
  void (*result_error)(void* context, const char* message, int bytes);
};

Sqlite g_sqlite;

void RefuseTokenizer(void* context, int, void**) {
  g_sqlite.result_error(
      context, "the sandbox refuses fts3_tokenizer, which calls functions at any address", -1);
}

/// Called by SQLite for each new connection.
int OnConnection(void* connection, char**, const void*) {
  for (int arguments = 1; arguments <= 2; ++arguments) {
    const int failed =
        g_sqlite.create_function(connection, "fts3_tokenizer", arguments, kSqliteUtf8, nullptr,
                                 RefuseTokenizer, nullptr, nullptr);
    if (failed != kSqliteOk) return failed;
  }
  return kSqliteOk;
}

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

bool TameSqlite(const char* path) {
  // The library stays open. This finds the module's own SQLite, in a library that it names or
  // within the module.
  void* const library = dlopen(path[0] == '\0' ? nullptr : path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return path[0] != '\0';  // the import will report the reason
  Sqlite found;
  if (!Find(library, "sqlite3_auto_extension", &found.auto_extension) ||
      !Find(library, "sqlite3_create_function", &found.create_function) ||
      !Find(library, "sqlite3_result_error", &found.result_error)) {
    return false;
  }
  // A program may claim to import from another file (sys.audit). One SQLite must not get another's
  // functions.
  if (g_sqlite.auto_extension != nullptr) return g_sqlite.auto_extension == found.auto_extension;
  g_sqlite = found;
  return found.auto_extension(reinterpret_cast<void (*)()>(OnConnection)) == kSqliteOk;
}

}  // namespace evald::guest
