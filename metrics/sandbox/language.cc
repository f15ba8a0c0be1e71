#include "metrics/sandbox/language.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace evald::sandbox {
namespace {

// Address space that V8, the Java machine and Go reserve without using it.
constexpr uint64_t kReserved = uint64_t{64} << 30;

Language Bash() {
  Language l;
  l.name = "bash";
  l.aliases = {"sh", "shell"};
  l.file = "main.sh";
  l.endings = {".sh"};
  l.run = {"/usr/bin/bash", "main.sh"};
  l.needs = {"/usr/bin/bash"};
  l.packages = "bash";
  l.processes = true;
  return l;
}

Language C() {
  Language l;
  l.name = "c";
  l.file = "main.c";
  l.endings = {".c"};
  l.build = {"/usr/bin/gcc", "-std=gnu17", "-O2", "-w", "-o", "main", "{sources}", "-lm"};
  l.run = {"./main"};
  l.needs = {"/usr/bin/gcc", "/usr/include/stdio.h"};
  l.packages = "gcc libc6-dev";
  return l;
}

Language Cpp() {
  Language l;
  l.name = "cpp";
  l.aliases = {"c++", "cc", "cxx"};
  l.file = "main.cpp";
  l.endings = {".cpp", ".cc", ".cxx"};
  l.build = {"/usr/bin/g++", "-std=gnu++17", "-O2", "-w", "-o", "main", "{sources}"};
  l.run = {"./main"};
  l.needs = {"/usr/bin/g++"};
  l.packages = "g++";
  return l;
}

Language Go() {
  Language l;
  l.name = "go";
  l.aliases = {"go_test.go", "golang"};
  l.file = "main.go";
  l.endings = {".go"};
  // A program without `main` is a test (program_files.cc), for which {go} stands.
  l.build = {"/usr/bin/go", "{go}", "-o", "main", "{sources}"};
  l.run = {"./main"};
  l.environment = {"GOCACHE=/tmp/go-cache", "GOPATH=/tmp/go", "GO111MODULE=off", "CGO_ENABLED=0",
                   "GOMAXPROCS=2",          "GOFLAGS=-p=2",   "GOTELEMETRY=off"};
  l.needs = {"/usr/bin/go"};
  l.packages = "golang-go";
  l.address_bytes = kReserved;
  l.overhead_bytes = uint64_t{64} << 20;
  return l;
}

Language Java() {
  Language l;
  l.name = "java";
  l.file = "Main.java";
  l.endings = {".java"};
  l.build = {"/usr/bin/javac",
             "-J-Xmx1g",
             "-J-XX:+UseSerialGC",
             "-J-XX:TieredStopAtLevel=1",
             "-encoding",
             "UTF8",
             "-nowarn",
             "-d",
             ".",
             "-cp",
             "/usr/share/java/javatuples.jar:.",
             "{sources}"};
  l.run = {"/usr/bin/java",
           "-ea",
           "-Xmx{heap}m",
           "-XX:+UseSerialGC",
           "-XX:-UsePerfData",
           "-XX:ActiveProcessorCount=2",
           "-cp",
           "/usr/share/java/javatuples.jar:.",
           "{class}"};
  l.needs = {"/usr/bin/javac", "/usr/bin/java"};
  l.packages = "default-jdk-headless";
  l.address_bytes = kReserved;
  l.overhead_bytes = uint64_t{512} << 20;
  l.startup_seconds = 1;
  return l;
}

Language JavaScript() {
  Language l;
  l.name = "javascript";
  l.aliases = {"js", "node"};
  l.file = "main.js";
  l.endings = {".js"};
  l.run = {"/usr/bin/node", "--max-old-space-size={heap}", "main.js"};
  l.needs = {"/usr/bin/node"};
  l.packages = "nodejs";
  l.address_bytes = kReserved;
  l.overhead_bytes = uint64_t{256} << 20;
  l.environment = {"UV_THREADPOOL_SIZE=2"};
  return l;
}

Language Lua() {
  Language l;
  l.name = "lua";
  l.file = "main.lua";
  l.endings = {".lua"};
  l.run = {"/usr/bin/lua5.4", "main.lua"};
  l.needs = {"/usr/bin/lua5.4"};
  l.packages = "lua5.4";
  return l;
}

Language Perl() {
  Language l;
  l.name = "perl";
  l.aliases = {"pl"};
  l.file = "main.pl";
  l.endings = {".pl"};
  l.run = {"/usr/bin/perl", "main.pl"};
  l.environment = {"PERL_HASH_SEED=0"};
  l.needs = {"/usr/bin/perl"};
  l.packages = "perl";
  return l;
}

Language Php() {
  Language l;
  l.name = "php";
  l.file = "main.php";
  l.endings = {".php"};
  l.run = {"/usr/bin/php", "-d", "memory_limit=-1", "-d", "display_errors=stderr", "main.php"};
  l.needs = {"/usr/bin/php"};
  l.packages = "php-cli";
  return l;
}

Language Python() {
  Language l;
  l.name = "python";
  l.aliases = {"py", "python3"};
  l.file = "main.py";
  l.endings = {".py"};
  // Without `site`, which would add packages that are installed for everybody; with what `site`
  // gives programs.
  l.run = {"{python}",
           "-S",
           "-s",
           "-B",
           "-c",
           "import site, sys\n"
           "site.setquit(); site.setcopyright(); site.sethelper()\n"
           "sys.argv = ['main.py']\n"
           "__file__ = 'main.py'\n"
           "exec(compile(open('main.py', 'rb').read(), 'main.py', 'exec'))"};
  l.environment = {"PYTHONHASHSEED=0", "PYTHONUTF8=1", "OMP_NUM_THREADS=1",
                   "OPENBLAS_NUM_THREADS=1"};
  return l;
}

Language Ruby() {
  Language l;
  l.name = "ruby";
  l.aliases = {"rb"};
  l.file = "main.rb";
  l.endings = {".rb"};
  l.run = {"/usr/bin/ruby", "main.rb"};
  l.needs = {"/usr/bin/ruby"};
  l.packages = "ruby ruby-test-unit";
  return l;
}

Language Rust() {
  Language l;
  l.name = "rust";
  l.aliases = {"rs"};
  l.file = "main.rs";
  l.endings = {".rs"};
  l.build = {"/usr/bin/rustc", "-O",   "--edition", "2021", "--cap-lints", "allow",
             "--crate-name",   "main", "-o",        "main", "main.rs"};
  l.run = {"./main"};
  l.needs = {"/usr/bin/rustc"};
  l.packages = "rustc";
  return l;
}

Language TypeScript() {
  Language l = JavaScript();
  l.name = "typescript";
  l.aliases = {"ts"};
  l.file = "main.ts";
  l.endings = {".ts"};
  l.build = {"/usr/bin/tsc", "--target",           "es2022", "--module",
             "commonjs",     "--moduleResolution", "node",   "{sources}"};
  l.needs = {"/usr/bin/node", "/usr/bin/tsc"};
  l.packages = "nodejs node-typescript";
  return l;
}

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

}  // namespace

const std::vector<Language>& Languages() {
  static const auto* const all =
      new std::vector<Language>{Bash(), C(),   Cpp(),    Go(),   Java(), JavaScript(), Lua(),
                                Perl(), Php(), Python(), Ruby(), Rust(), TypeScript()};
  return *all;
}

const Language* FindLanguage(std::string_view name) {
  for (const Language& language : Languages()) {
    if (SameName(name, language.name)) return &language;
    for (const std::string& alias : language.aliases) {
      if (SameName(name, alias)) return &language;
    }
  }
  return nullptr;
}

std::vector<std::string> LanguageNames() {
  std::vector<std::string> names;
  for (const Language& language : Languages()) names.push_back(language.name);
  return names;
}

std::string MissingTool(const Language& language) {
  for (const std::string& path : language.needs) {
    if (access(path.c_str(), F_OK) != 0) return path;
  }
  return "";
}

std::string InstallLine(const Language& language) { return "apt-get install " + language.packages; }

}  // namespace evald::sandbox
