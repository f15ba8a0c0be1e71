#include "worker/server/log_reason.h"

#include <cctype>
#include <string_view>

#include "base/text.h"

namespace evald::server {
namespace {

constexpr size_t kBytesMax = 600;

// A line of a log at a level below ERROR may name an error that may come.
bool IsNotice(std::string_view line) {
  for (const std::string_view level : {" WARNING ", " INFO ", " DEBUG "}) {
    if (line.find(level) != std::string_view::npos) return true;
  }
  return false;
}

// The begin of "SomeError: " in a line, of "Value error, " (pydantic) or of "program: error: "
// (argparse), or npos.
size_t ExceptionAt(std::string_view line) {
  if (IsNotice(line)) return std::string_view::npos;
  if (line.find(": error: ") != std::string_view::npos) return 0;
  if (const size_t at = line.find("Value error, "); at != std::string_view::npos) return at;
  for (const std::string_view ending : {"Error: ", "Exception: "}) {
    const size_t at = line.find(ending);
    if (at == std::string_view::npos) continue;
    size_t begin = at;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(line[begin - 1])) != 0 ||
                         line[begin - 1] == '.' || line[begin - 1] == '_'))
      --begin;
    if (begin == at) continue;  // "Error: " alone, which is no exception's name
    return begin;
  }
  return std::string_view::npos;
}

// A line that tells of a consequence.
bool IsConsequence(std::string_view text) {
  for (const std::string_view words :
       {"root cause above", "Engine core initialization failed", " validation error"}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::string PythonReason(const std::string& log) {
  std::string consequence;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line = std::string_view(log).substr(begin, end - begin);
    begin = end + 1;
    const size_t at = ExceptionAt(line);
    if (at == std::string_view::npos) continue;
    std::string text = ReplaceInvalidUtf8(std::string(line.substr(at, kBytesMax)));
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
      text.pop_back();
    if (!IsConsequence(text)) return text;
    consequence = text;
  }
  return consequence;
}

}  // namespace evald::server
