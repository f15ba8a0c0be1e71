#include "metrics/sandbox/program_files.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "evald/error.h"

namespace evald::sandbox {
namespace {

constexpr size_t kNameBytesMax = 200;

/// For programs that talk to node without its types, which Debian does not bring with the compiler.
constexpr const char* kNodeTypes =
    "declare var require: any;\n"
    "declare var process: any;\n"
    "declare var Buffer: any;\n"
    "declare var module: any;\n"
    "declare module 'fs';\n"
    "declare module 'node:fs';\n"
    "declare module 'readline';\n"
    "declare module 'node:readline';\n"
    "declare module 'assert';\n"
    "declare module 'node:assert';\n"
    "declare module 'util';\n"
    "declare module 'os';\n";

bool EndsWithAny(const std::string& name, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& ending) { return name.ends_with(ending); });
}

void CheckName(const std::string& name, const std::set<std::string>& names) {
  if (!IsProgramPath(name)) {
    throw Error(ErrorKind::kInput,
                "the name '" + PrintableLine(Shortened(name, kNameBytesMax)) +
                    "' of a program's file is none: expected a relative path without '..', of at "
                    "most 200 bytes");
  }
  if (names.count(name) > 0)
    throw Error(ErrorKind::kInput, "the program has two files '" + PrintableLine(name) + "'");
}

/// The name of a program that is one file.
std::string NameOf(const Language& language, const std::string& text) {
  if (language.name == "java") {
    const JavaClasses classes = FindJavaClasses(text);
    if (!classes.public_class.empty()) return classes.public_class + ".java";
  }
  if (language.name == "go" && !HasGoMain(text)) return "main_test.go";
  return language.file;
}

/// Java's class with `main`, as `java` wants it named.
std::string MainClass(const std::vector<SourceFile>& files) {
  for (const SourceFile& file : files) {
    if (!file.path.ends_with(".java")) continue;
    const JavaClasses classes = FindJavaClasses(file.text);
    if (classes.main_class.empty()) continue;
    return classes.package.empty() ? classes.main_class
                                   : classes.package + "." + classes.main_class;
  }
  return "Main";
}

std::string Replaced(std::string word, const std::string& what, const std::string& with) {
  const size_t at = word.find(what);
  return at == std::string::npos ? word : word.replace(at, what.size(), with);
}

std::vector<std::string> Filled(const std::vector<std::string>& words, const Language& language,
                                const ProgramPlan& plan, const std::string& python,
                                uint64_t memory_bytes) {
  std::vector<std::string> filled;
  for (const std::string& word : words) {
    if (word == "{sources}") {
      for (const SourceFile& file : plan.files) {
        if (EndsWithAny(file.path, language.endings)) filled.push_back("./" + file.path);
      }
    } else if (word == "{go}") {
      const bool tests =
          std::any_of(plan.files.begin(), plan.files.end(),
                      [](const SourceFile& file) { return file.path.ends_with("_test.go"); });
      filled.emplace_back(tests ? "test" : "build");
      if (tests) filled.insert(filled.end(), {"-c", "-vet=off"});
    } else if (word == "{class}") {
      filled.push_back(MainClass(plan.files));
    } else {
      filled.push_back(Replaced(Replaced(word, "{python}", python), "{heap}",
                                std::to_string(memory_bytes >> 20)));
    }
  }
  return filled;
}

}  // namespace

bool IsProgramPath(std::string_view name) {
  const std::vector<std::string> parts = Split(name, '/');
  return name.size() <= kNameBytesMax &&
         std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
           return !part.empty() && part != "." && part != ".." &&
                  part.find_first_of(std::string("\0\n", 2)) == std::string::npos;
         });
}

bool HasGoMain(std::string_view text) {
  size_t at = 0;
  while ((at = text.find("func main", at)) != std::string_view::npos) {
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    at += 9;
    const size_t after = text.find_first_not_of(" \t", at);
    if (begins_line && after != std::string_view::npos && text[after] == '(') return true;
  }
  return false;
}

ProgramPlan PlanProgram(const Language& language, const std::vector<SourceFile>& files,
                        const std::string& python, uint64_t memory_bytes) {
  ProgramPlan plan;
  std::set<std::string> names;
  for (const SourceFile& file : files) {
    SourceFile named = file;
    if (named.path.empty()) named.path = NameOf(language, file.text);
    CheckName(named.path, names);
    names.insert(named.path);
    plan.files.push_back(std::move(named));
  }
  const char* const types = "evald-node.d.ts";
  if (language.name == "typescript" && names.count(types) == 0)
    plan.files.push_back({types, kNodeTypes});
  plan.build = Filled(language.build, language, plan, python, memory_bytes);
  plan.run = Filled(language.run, language, plan, python, memory_bytes);
  return plan;
}

}  // namespace evald::sandbox
