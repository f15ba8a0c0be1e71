#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace evald::sandbox {

/// How programs of one language are compiled and run. Words of a command may hold placeholders:
/// {sources} (a word by itself) stands for the program's files of the language, {class} for Java's
/// class with `main`, {heap} for the memory limit in MiB, {python} for the sandbox's interpreter.
struct Language {
  std::string name;                  ///< "cpp"
  std::vector<std::string> aliases;  ///< names in data sets: "c++", MultiPL-E's "rs"
  std::string file;                  ///< of a program that is one file
  std::vector<std::string> endings;  ///< of {sources}
  std::vector<std::string> build;    ///< empty: nothing to compile
  std::vector<std::string> run;
  std::vector<std::string> environment;  ///< "NAME=value"
  std::vector<std::string> needs;        ///< files that must be there
  std::string packages;                  ///< Debian's, for `apt-get install`
  /// What the language's runtime reserves of addresses, beyond the memory limit
  uint64_t address_bytes = 0;
  /// What the language's runtime takes of memory for itself, beyond the memory limit
  uint64_t overhead_bytes = 0;
  double startup_seconds = 0;  ///< CPU time that the runtime takes before a program begins
  bool processes = false;      ///< whether programs are made of processes, as a shell's are
};

/// The table: Bash, C, C++, Go, Java, JavaScript, Lua, Perl, PHP, Python, Ruby, Rust, TypeScript.
const std::vector<Language>& Languages();

/// By a name or an alias, in any case. nullptr if there is none.
const Language* FindLanguage(std::string_view name);

/// Names of all languages.
std::vector<std::string> LanguageNames();

/// The first of `needs` that this host lacks; "" if it has all.
std::string MissingTool(const Language& language);

/// What to do about a missing tool: "apt-get install g++".
std::string InstallLine(const Language& language);

}  // namespace evald::sandbox
