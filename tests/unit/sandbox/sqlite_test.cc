// sqlite3 without the function that calls any address.

#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;

/// Both forms of the call are refused on every connection that a program can have.
std::string Attempts() {
  return "import sqlite3\n"
         "def refused(con):\n"
         "  for call, values in [('select fts3_tokenizer(?, ?)', ('evil', bytes(8))),\n"
         "                       ('select fts3_tokenizer(?)', ('simple',)),\n"
         "                       (\"select fts3_tokenizer('simple')\", ()),\n"
         "                       (\"select fts3_tokenizer('evil', x'0000000000000000')\", ())]:\n"
         "    try: con.execute(call, values)\n"
         "    except Exception as error: reasons.append(str(error))\n"
         "    else: raise AssertionError((con, call))\n"
         "reasons = []\n";
}

TEST_F(Isolated, SqliteCallsNoAddress) {
  ExpectPasses(Attempts() +
               "refused(sqlite3.connect(':memory:'))\n"
               "assert all('sandbox refuses' in reason for reason in reasons) or 'no such "
               "function' in reasons[0], reasons\n"
               "refused(sqlite3.connect('file.db'))\n"
               "refused(sqlite3.connect('file:x?mode=memory&cache=shared', uri=True))\n"
               "class Own(sqlite3.Connection): pass\n"
               "refused(sqlite3.connect(':memory:', factory=Own))\n"
               "refused(Own(':memory:'))\n"
               "con = sqlite3.connect(':memory:')\n"
               "con.execute(\"attach ':memory:' as other\")\n"
               "refused(con)\n"
               "con.__init__('file.db')\n"
               "refused(con)\n");
}

TEST_F(Isolated, SqlitesRefusalCannotBeTakenAway) {
  ExpectPasses(Attempts() +
               "con = sqlite3.connect(':memory:')\n"
               "for count in (-1, 1, 2):\n"
               "  con.create_function('fts3_tokenizer', count, None)\n"
               "  con.create_function('FTS3_TOKENIZER', count, None)\n"
               "  refused(con)\n"
               "con.set_authorizer(lambda *a: sqlite3.SQLITE_OK)\n"
               "if hasattr(con, 'setconfig'): con.setconfig(1004, True)\n"
               "refused(con)\n"
               "if hasattr(con, 'deserialize'):\n"
               "  con.execute('create table t (x)')\n"
               "  con.deserialize(con.serialize())\n"
               "  refused(con)\n");
}

/// The module under another name, and from a file that the program names in its own audit event.
TEST_F(Isolated, SqliteIsTamedByWhateverNameItComes) {
  ExpectPasses(
      Attempts() +
      "import _imp, glob, os, sys, types\n"
      "files = [f for folder in sys.path for f in glob.glob(folder + '/_sqlite3.*so')]\n"
      "for name in ['a.b._sqlite3', 'a\\0._sqlite3', '_sqlite3\\0x']:\n"
      "  for file in files:\n"
      "    try: module = _imp.create_dynamic(types.SimpleNamespace(name=name, origin=file))\n"
      "    except (ImportError, SystemError, ValueError):\n"
      "      assert '\\0' in name\n"
      "      continue\n"
      "    _imp.exec_dynamic(module)\n"
      "    refused(module.connect(':memory:'))\n"
      "for path in files + [f for f in glob.glob(os.__file__[:-5] + '*')][:1] + ['/nowhere']:\n"
      "  try: sys.audit('import', '_sqlite3', path)\n"
      "  except ImportError: pass\n"
      "refused(sqlite3.connect(':memory:'))\n");
}

TEST_F(Isolated, ASqliteThatCannotBeTamedIsRefused) {
  ExpectPasses(
      "import glob, os, sys\n"
      "other = [f for folder in sys.path for f in glob.glob(folder + '/_json.*so')]\n"
      "assert other or '_json' in sys.builtin_module_names\n"
      "for file in other:\n"
      "  try: sys.audit('import', '_sqlite3', file)\n"
      "  except ImportError as error: assert 'fts3_tokenizer' in str(error)\n"
      "  else: raise AssertionError(file)\n"
      "import sqlite3\n"
      "assert sqlite3.connect(':memory:').execute('select 1').fetchone() == (1,)");
}

TEST_F(Isolated, FullTextSearchStillWorks) {
  ExpectPasses(
      "import sqlite3\n"
      "con = sqlite3.connect(':memory:')\n"
      "try: con.execute('create virtual table t using fts3(x, tokenize=porter)')\n"
      "except sqlite3.OperationalError as error: assert 'no such module' in str(error)\n"
      "else:\n"
      "  con.executemany('insert into t values (?)', [('running dogs',), ('a cat',)])\n"
      "  assert con.execute(\"select x from t where t match 'run'\").fetchall() == [('running "
      "dogs',)]\n"
      "con.create_function('twice', 1, lambda x: 2 * x)\n"
      "assert con.execute('select twice(21)').fetchone() == (42,)");
}

}  // namespace
}  // namespace evald::sandbox_test
