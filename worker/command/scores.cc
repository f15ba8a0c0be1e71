#include "worker/command/scores.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <string_view>

#include "base/json_path.h"
#include "base/jsonl.h"
#include "base/read_roots.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::command {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kNotNumbers[] = {"-Infinity", "Infinity", "NaN"};

// The folder's own name is no pattern.
std::string Escaped(const std::string& folder) {
  std::string out;
  for (const char c : folder) {
    if (std::strchr("*?[]\\", c) != nullptr) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

// The text with the words that Python writes for numbers that are not finite as strings.
std::string WithQuotedWords(const std::string& text) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\' && i + 1 < text.size()) out.push_back(text[i++]);
    if (!quoted) {
      for (const std::string_view word : kNotNumbers) {
        if (std::string_view(text).substr(i, word.size()) != word) continue;
        out += '"' + std::string(word) + '"';
        i += word.size();
        break;
      }
    }
    if (i < text.size()) out.push_back(text[i]);
  }
  return out;
}

Json Parse(const std::string& text, const std::string& file) {
  const bool words = text.find("NaN") != text.npos || text.find("Infinity") != text.npos;
  return ParseJson(words ? WithQuotedWords(text) : text, file, kResultsValuesMax);
}

double FiniteNumber(const Json& value, const std::string& path) {
  if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
  // Without the quotes that WithQuotedWords has put around
  const bool word =
      value.is_string() && std::find(std::begin(kNotNumbers), std::end(kNotNumbers),
                                     value.get_ref<const std::string&>()) != std::end(kNotNumbers);
  throw Error(ErrorKind::kInput, fmt::format("{} is {}, expected a finite number", path,
                                             word ? value.get<std::string>()
                                                  : Shortened(PrintableLine(value.dump()), 100)));
}

}  // namespace

fs::path FindResults(const fs::path& folder, const std::string& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> freed(&found, ::globfree);
  const std::string whole = Escaped(folder.string()) + "/" + pattern;
  const int failure = ::glob(whole.c_str(), 0, nullptr, &found);
  if (failure != 0 && failure != GLOB_NOMATCH)
    throw Error(ErrorKind::kInfrastructure, folder.string() + ": cannot be searched");
  if (found.gl_pathc == 0) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("the command wrote no results: there is no {} in {}", pattern, folder.string()),
        "`results: {file: ...}` names the file, below the folder in which the command runs "
        "({output})");
  }
  if (found.gl_pathc > 1) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{} files in {} fit {}: {}, {}{}", found.gl_pathc, folder.string(), pattern,
                    fs::path(found.gl_pathv[0]).lexically_relative(folder).string(),
                    fs::path(found.gl_pathv[1]).lexically_relative(folder).string(),
                    found.gl_pathc > 2 ? ", …" : ""),
        "let `results: {file: ...}` name one");
  }
  return found.gl_pathv[0];
}

Json ScoresIn(const std::string& text, const std::string& file,
              const std::vector<CommandScore>& scores) {
  const Json document = Parse(text, file);
  Json found = Json::object();
  for (const CommandScore& score : scores) {
    const std::string where = fmt::format("{}: score '{}'", file, score.name);
    try {
      found[score.name] = FiniteNumber(JsonPath(score.path).Find(document), score.path);
    } catch (Error& e) {
      throw e.AddContext(where);
    }
  }
  return found;
}

Json ReadScores(const fs::path& folder, const CommandSpec& spec) {
  const fs::path path = FindResults(folder, spec.results_file);
  const ReadRoots own({folder});  // a link may not lead out of the folder
  struct stat info{};
  const ReadFolder beside(path.parent_path(), own);
  if (!beside.Stat(path.filename().string(), &info) || !S_ISREG(info.st_mode))
    throw Error(ErrorKind::kInput, path.string() + ": is no regular file in the command's folder");
  return ScoresIn(own.Read(path, kResultsBytesMax), path.string(), spec.scores);
}

}  // namespace evald::command
