#include "base/regex.h"

#include <fmt/format.h>
#include <oniguruma.h>
#include <time.h>

#include <algorithm>
#include <mutex>

#include "evald/error.h"

namespace evald {
namespace {

// Oniguruma gives up a search after this many backtracking steps: about a second.
constexpr unsigned long kRetryLimitPerSearch = 50'000'000;
// If the steps of several searches are counted together: the limit of each search's first try, and
// the growth for each further try. Oniguruma does not say how many steps a search took.
constexpr unsigned long kFirstTry = 1'000;
constexpr unsigned long kTryGrowth = 8;
// Places from which a search was tried, for one look at the clock.
constexpr unsigned kStartsPerLook = 16;
// The callout of Oniguruma at each place from which a search is tried.
constexpr const char* kAtEachStart = "(?{start})";
// Each entry takes about 40 bytes.
constexpr unsigned int kStackEntriesMax = 16 * 1024 * 1024;
constexpr double kDocumentSeconds = 60;
// A text gets so much even if its document has used up its bound, and kFirstTry steps for a search.
constexpr double kLeastSeconds = 0.05;

thread_local RegexDocument* document_of_thread = nullptr;

void InitialiseOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    onig_set_retry_limit_in_match(kRetryLimitPerSearch);
    onig_set_retry_limit_in_search(kRetryLimitPerSearch);
    onig_set_match_stack_limit_size(kStackEntriesMax);
  });
}

const OnigUChar* Bytes(const char* p) { return reinterpret_cast<const OnigUChar*>(p); }

// Whether the code says that a search was given up.
bool IsLimit(int code) {
  return code == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || code == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER ||
         code == ONIGERR_MATCH_STACK_LIMIT_OVER || code == ONIG_ABORT;
}

double ProcessorSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int OnStart(OnigCalloutArgs*, void* steps) {
  return static_cast<RegexSteps*>(steps)->Start() ? ONIG_CALLOUT_SUCCESS : ONIG_ABORT;
}

std::string Describe(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = info == nullptr ? onig_error_code_to_str(text, code)
                                     : onig_error_code_to_str(text, code, info);
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(length)};
}

// A compiled pattern and the text that it was compiled from.
class Program {
 public:
  Program(const std::string& shown, const std::string& pattern, OnigOptionType options,
          OnigCaseFoldType case_fold)
      : shown_(shown), pattern_(pattern), options_(options), case_fold_(case_fold) {
    OnigCompileInfo compile;
    compile.num_of_elements = 5;
    compile.pattern_enc = ONIG_ENCODING_UTF8;
    compile.target_enc = ONIG_ENCODING_UTF8;
    compile.syntax = ONIG_SYNTAX_ONIGURUMA;
    compile.option = options;
    compile.case_fold_flag = case_fold;
    OnigErrorInfo info;
    const int code = onig_new_deluxe(&regex_, Bytes(pattern_.data()),
                                     Bytes(pattern_.data() + pattern_.size()), &compile, &info);
    if (code != ONIG_NORMAL) Fail(Describe(code, &info));
  }
  ~Program() { onig_free(regex_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  OnigRegex regex() const { return regex_; }
  [[noreturn]] void Fail(const std::string& why) const {
    throw Error(ErrorKind::kInput, fmt::format("regular expression '{}': {}", shown_, why));
  }
  [[noreturn]] void FailSearch(int code) const {
    if (!IsLimit(code)) Fail(Describe(code, nullptr));
    throw RegexGivenUp(
        ErrorKind::kInput,
        fmt::format(
            "regular expression '{}': a search was given up after {} steps back (or {} places kept "
            "to go back to, or too much time), expected fewer",
            shown_, kRetryLimitPerSearch, kStackEntriesMax),
        "write the expression without a repetition inside a repetition");
  }
  std::unique_ptr<Program> NotEmpty() const {
    return std::make_unique<Program>(shown_, pattern_, options_ | ONIG_OPTION_FIND_NOT_EMPTY,
                                     case_fold_);
  }

 private:
  std::string shown_;
  std::string pattern_;
  OnigOptionType options_;
  OnigCaseFoldType case_fold_;
  OnigRegex regex_ = nullptr;
};

std::unique_ptr<Program> Compile(const std::string& pattern, const RegexOptions& options) {
  OnigOptionType flags = ONIG_OPTION_CAPTURE_GROUP;
  // Oniguruma's name for "dot matches newline"
  if (options.dot_all) flags |= ONIG_OPTION_MULTILINE;
  if (options.ignore_case) flags |= ONIG_OPTION_IGNORECASE;
  const OnigCaseFoldType one_to_one = 0;
  const OnigCaseFoldType fold = options.fold_one_to_one ? one_to_one : ONIGENC_CASE_FOLD_DEFAULT;
  const std::string& shown = options.shown.empty() ? pattern : options.shown;
  const std::string& compiled = options.timed ? kAtEachStart + ("(?:" + pattern + ")") : pattern;
  return std::make_unique<Program>(shown, compiled, flags, fold);
}

using Region = std::unique_ptr<OnigRegion, void (*)(OnigRegion*)>;

Region MakeRegion() {
  return {onig_region_new(), [](OnigRegion* region) { onig_region_free(region, 1); }};
}

}  // namespace

struct Regex::Compiled {
  std::unique_ptr<Program> program;
  mutable std::once_flag not_empty_once;
  mutable std::unique_ptr<Program> not_empty;  // the same pattern, but without empty matches
};

namespace {

void CopySpans(const OnigRegion& region, Regex::Match* match) {
  match->assign(static_cast<size_t>(region.num_regs), Regex::Span{});
  for (int i = 0; i < region.num_regs; ++i) {
    if (region.beg[i] == ONIG_REGION_NOTPOS) continue;
    (*match)[static_cast<size_t>(i)] = {static_cast<size_t>(region.beg[i]),
                                        static_cast<size_t>(region.end[i])};
  }
}

bool IsStepLimit(int code) {
  return code == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || code == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
}

/// Calls `search` with growing limits until one suffices. Failed tries are taken from `steps`. So
/// the total is bounded by kTryGrowth times these steps, and by a thousand steps for each search.
template <typename Search>
int SearchWithin(RegexSteps* steps, Search search) {
  const std::unique_ptr<OnigMatchParam, void (*)(OnigMatchParam*)> limits(onig_new_match_param(),
                                                                          &onig_free_match_param);
  onig_set_progress_callout_of_match_param(limits.get(), OnStart);
  onig_set_callout_user_data_of_match_param(limits.get(), steps);
  for (unsigned long wanted = kFirstTry;; wanted *= kTryGrowth) {
    const unsigned long limit = steps->Try(std::min(wanted, kRetryLimitPerSearch));
    // Oniguruma would take 0 for "no limit"
    if (limit == 0) return ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
    onig_set_retry_limit_in_match_of_match_param(limits.get(), limit);
    onig_set_retry_limit_in_search_of_match_param(limits.get(), limit);
    const int code = search(limits.get());
    if (!IsStepLimit(code)) return code;
    steps->Take(limit);
    if (limit < wanted || limit == kRetryLimitPerSearch) return code;
  }
}

bool SearchWith(const Program& program, std::string_view text, size_t start, OnigRegion* region,
                Regex::Match* match, RegexSteps* steps) {
  if (start > text.size()) return false;
  const OnigUChar* begin = Bytes(text.data());
  const OnigUChar* end = begin + text.size();
  const int code =
      steps == nullptr
          ? onig_search(program.regex(), begin, end, begin + start, end, region, ONIG_OPTION_NONE)
          : SearchWithin(steps, [&](OnigMatchParam* limits) {
              return onig_search_with_param(program.regex(), begin, end, begin + start, end, region,
                                            ONIG_OPTION_NONE, limits);
            });
  if (code == ONIG_MISMATCH) return false;
  if (code < 0) program.FailSearch(code);
  CopySpans(*region, match);
  return true;
}

}  // namespace

RegexDocument::RegexDocument() : end_(ProcessorSeconds() + kDocumentSeconds) {
  document_of_thread = this;
}

RegexDocument::~RegexDocument() { document_of_thread = nullptr; }

RegexSteps::RegexSteps(Text text, double seconds)
    : document_(text == Text::kAnswer ? document_of_thread : nullptr) {
  const double now = ProcessorSeconds();
  end_ = now + seconds;
  if (document_ != nullptr) end_ = std::min(end_, std::max(document_->end_, now + kLeastSeconds));
}

unsigned long RegexSteps::Try(unsigned long wanted) const {
  const unsigned long of_text = std::min(wanted, left_);
  return document_ == nullptr ? of_text : std::min(of_text, std::max(document_->left_, kFirstTry));
}

void RegexSteps::Take(unsigned long steps) {
  left_ -= std::min(steps, left_);
  if (document_ != nullptr) document_->left_ -= std::min(steps, document_->left_);
}

bool RegexSteps::Start() { return ++starts_ % kStartsPerLook != 0 || ProcessorSeconds() < end_; }

Regex::Regex(const std::string& pattern, const RegexOptions& options)
    : compiled_(std::make_unique<Compiled>()) {
  InitialiseOnce();
  compiled_->program = Compile(pattern, options);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

bool Regex::Search(std::string_view text, size_t start, Match* match, RegexSteps* steps) const {
  const Region region = MakeRegion();
  return SearchWith(*compiled_->program, text, start, region.get(), match, steps);
}

bool Regex::MatchNotEmptyAt(std::string_view text, size_t at, Match* match,
                            RegexSteps* steps) const {
  std::call_once(compiled_->not_empty_once,
                 [this] { compiled_->not_empty = compiled_->program->NotEmpty(); });
  const Region region = MakeRegion();
  const OnigUChar* begin = Bytes(text.data());
  const OnigRegex regex = compiled_->not_empty->regex();
  const OnigUChar* end = begin + text.size();
  const int code = steps == nullptr
                       ? onig_match(regex, begin, end, begin + at, region.get(), ONIG_OPTION_NONE)
                       : SearchWithin(steps, [&](OnigMatchParam* limits) {
                           return onig_match_with_param(regex, begin, end, begin + at, region.get(),
                                                        ONIG_OPTION_NONE, limits);
                         });
  if (code == ONIG_MISMATCH) return false;
  if (code < 0) compiled_->program->FailSearch(code);
  CopySpans(*region, match);
  return true;
}

void Regex::ForEachMatch(std::string_view text, const std::function<bool(const Match&)>& visit,
                         RegexSteps* steps) const {
  const Region region = MakeRegion();
  Match match;
  size_t start = 0;
  while (SearchWith(*compiled_->program, text, start, region.get(), &match, steps)) {
    if (!visit(match)) return;
    start = match[0].end;
    if (match[0].begin != match[0].end || start >= text.size()) {
      if (match[0].begin == match[0].end) return;
      continue;
    }
    if (MatchNotEmptyAt(text, start, &match, steps)) {
      if (!visit(match)) return;
      start = match[0].end;
      continue;
    }
    ++start;
    while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) ++start;
  }
}

std::vector<Regex::Match> Regex::FindAll(std::string_view text) const {
  std::vector<Match> matches;
  ForEachMatch(text, [&](const Match& match) {
    matches.push_back(match);
    return true;
  });
  return matches;
}

std::string Regex::ReplaceAll(std::string_view text, std::string_view replacement,
                              RegexSteps* steps) const {
  std::string out;
  size_t copied = 0;
  ForEachMatch(
      text,
      [&](const Match& match) {
        out.append(text.substr(copied, match[0].begin - copied));
        out.append(replacement);
        copied = match[0].end;
        return true;
      },
      steps);
  out.append(text.substr(copied));
  return out;
}

int Regex::groups() const { return onig_number_of_captures(compiled_->program->regex()); }

std::vector<std::pair<char32_t, char32_t>> OnigurumaRanges(const std::string& property) {
  InitialiseOnce();
  OnigEncoding utf8 = ONIG_ENCODING_UTF8;
  std::string name = property;  // the call needs it writable
  auto* bytes = reinterpret_cast<OnigUChar*>(name.data());
  const int kind = utf8->property_name_to_ctype(utf8, bytes, bytes + name.size());
  OnigCodePoint single_byte_end = 0;
  const OnigCodePoint* listed = nullptr;  // their number, then first and last of each
  if (kind < 0 || utf8->get_ctype_code_range(static_cast<OnigCtype>(kind), &single_byte_end,
                                             &listed) != ONIG_NORMAL) {
    throw Error(ErrorKind::kInput, fmt::format("no Unicode property is named '{}'", property));
  }
  std::vector<std::pair<char32_t, char32_t>> ranges;
  for (OnigCodePoint i = 0; i < listed[0]; ++i) {
    ranges.emplace_back(listed[1 + 2 * i], listed[2 + 2 * i]);
  }
  return ranges;
}

}  // namespace evald
