#include "base/regex.h"

#include <fmt/format.h>
#include <oniguruma.h>

#include <mutex>

#include "evald/error.h"

namespace evald {
namespace {

// Oniguruma gives up a search after so many backtracking steps: about a second.
constexpr unsigned long kRetryLimitPerSearch = 50'000'000;

void InitialiseOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    onig_set_retry_limit_in_match(kRetryLimitPerSearch);
    onig_set_retry_limit_in_search(kRetryLimitPerSearch);
  });
}

const OnigUChar* Bytes(const char* p) { return reinterpret_cast<const OnigUChar*>(p); }

std::string Describe(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = info == nullptr ? onig_error_code_to_str(text, code)
                                     : onig_error_code_to_str(text, code, info);
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(length)};
}

OnigOptionType Options(RegexDialect dialect, RegexFlags flags) {
  OnigOptionType options = ONIG_OPTION_CAPTURE_GROUP;
  if (flags.dot_all) options |= ONIG_OPTION_MULTILINE;  // Oniguruma's name for "dot matches newline"
  if (flags.ignore_case) options |= ONIG_OPTION_IGNORECASE;
  if (dialect == RegexDialect::kPython) {
    // Python's ^ and $ match only at the ends of the text unless re.MULTILINE is given.
    options |= flags.multiline ? ONIG_OPTION_NEGATE_SINGLELINE : ONIG_OPTION_SINGLELINE;
  }
  return options;
}

}  // namespace

struct Regex::Compiled {
  OnigRegex regex = nullptr;
  std::string pattern;
  ~Compiled() {
    if (regex != nullptr) onig_free(regex);
  }
};

Regex::Regex(const std::string& pattern, RegexDialect dialect, RegexFlags flags)
    : compiled_(std::make_unique<Compiled>()) {
  InitialiseOnce();
  compiled_->pattern = pattern;
  OnigSyntaxType* syntax =
      dialect == RegexDialect::kPython ? &OnigSyntaxPython : &OnigSyntaxOniguruma;
  OnigErrorInfo info;
  const int code = onig_new(&compiled_->regex, Bytes(pattern.data()),
                            Bytes(pattern.data() + pattern.size()), Options(dialect, flags),
                            ONIG_ENCODING_UTF8, syntax, &info);
  if (code != ONIG_NORMAL) {
    throw Error(ErrorKind::kInput,
                fmt::format("regular expression '{}': {}", pattern, Describe(code, &info)));
  }
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

bool Regex::Search(std::string_view text, size_t start, Match* match) const {
  if (start > text.size()) return false;
  std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region(
      onig_region_new(), [](OnigRegion* r) { onig_region_free(r, 1); });
  const OnigUChar* begin = Bytes(text.data());
  const OnigUChar* end = begin + text.size();
  const int code = onig_search(compiled_->regex, begin, end, begin + start, end, region.get(),
                               ONIG_OPTION_NONE);
  if (code == ONIG_MISMATCH) return false;
  if (code < 0) {
    throw Error(ErrorKind::kInput, fmt::format("regular expression '{}': {}", compiled_->pattern,
                                               Describe(code, nullptr)));
  }
  match->assign(static_cast<size_t>(region->num_regs), Span{});
  for (int i = 0; i < region->num_regs; ++i) {
    if (region->beg[i] == ONIG_REGION_NOTPOS) continue;
    (*match)[static_cast<size_t>(i)] = {static_cast<size_t>(region->beg[i]),
                                        static_cast<size_t>(region->end[i])};
  }
  return true;
}

std::vector<Regex::Match> Regex::FindAll(std::string_view text) const {
  std::vector<Match> matches;
  Match match;
  size_t start = 0;
  while (Search(text, start, &match)) {
    matches.push_back(match);
    start = match[0].end;
    if (match[0].begin == match[0].end) {
      // An empty match: go on behind the next code point, as Python does.
      ++start;
      while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) ++start;
    }
  }
  return matches;
}

std::string Regex::ReplaceAll(std::string_view text, std::string_view replacement) const {
  std::string out;
  size_t copied = 0;
  for (const Match& match : FindAll(text)) {
    out.append(text.substr(copied, match[0].begin - copied));
    out.append(replacement);
    copied = match[0].end;
  }
  out.append(text.substr(copied));
  return out;
}

int Regex::groups() const { return onig_number_of_captures(compiled_->regex); }

}  // namespace evald
