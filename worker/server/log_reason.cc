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

// Calls `take` with each line until it returns false.
template <typename Take>
void EachLine(std::string_view log, const Take& take) {
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    if (!take(log.substr(begin, end - begin))) return;
    begin = end + 1;
  }
}

// At most kBytesMax bytes of the text, without space at its end.
std::string Shown(std::string_view text) {
  const std::string valid = ReplaceInvalidUtf8(std::string(text.substr(0, kBytesMax)));
  return std::string(Trim(valid));
}

// "0.00.008.009": llama.cpp's time of a log line.
bool IsLlamaTime(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

std::string PythonReason(const std::string& log) {
  std::string consequence, cause;
  EachLine(log, [&](std::string_view line) {
    const size_t at = ExceptionAt(line);
    if (at == std::string_view::npos) return true;
    const std::string text = Shown(line.substr(at));
    (IsConsequence(text) ? consequence : cause) = text;
    return cause.empty();
  });
  return cause.empty() ? consequence : cause;
}

std::string LlamaReason(const std::string& log) {
  constexpr std::string_view kLevel = " E ", kArguments = "error: ";
  std::string cause;
  EachLine(log, [&](std::string_view line) {
    const size_t level = line.find(kLevel);
    if (level != std::string_view::npos && IsLlamaTime(line.substr(0, level)))
      cause = Shown(line.substr(level + kLevel.size()));
    if (line.starts_with(kArguments)) cause = Shown(line.substr(kArguments.size()));
    return cause.empty();
  });
  return cause;
}

}  // namespace evald::server
