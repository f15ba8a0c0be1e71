#include "metrics/math_comparer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kVerdictFileBytesMax = uint64_t{1} << 20;
constexpr size_t kHashLength = 64;

// The words of the files; kTooLong is not kept.
constexpr std::pair<MathComparer::Verdict, std::string_view> kWords[] = {
    {MathComparer::Verdict::kEqual, "equal"},
    {MathComparer::Verdict::kUnequal, "unequal"},
    {MathComparer::Verdict::kOverLimit, "limit"}};

// Texts one behind the other, each with its length, so that no two lists have one hash.
std::string HashOf(std::initializer_list<std::string_view> texts) {
  std::string all;
  for (const std::string_view text : texts) all += fmt::format("{}:{}", text.size(), text);
  return Sha256Hex(all);
}

// The verdicts of a file: "<hash> <word>" a line. Lines of another form are passed over: two
// processes may have written at once, or one was killed while it wrote.
std::map<std::string, MathComparer::Verdict, std::less<>> ReadVerdicts(const fs::path& file) {
  std::map<std::string, MathComparer::Verdict, std::less<>> verdicts;
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return verdicts;
  for (const std::string& line : Split(ReadFile(file), '\n')) {
    if (line.size() <= kHashLength || line[kHashLength] != ' ') continue;
    const std::string_view word = std::string_view(line).substr(kHashLength + 1);
    for (const auto& [verdict, known] : kWords) {
      if (word == known) verdicts[line.substr(0, kHashLength)] = verdict;
    }
  }
  return verdicts;
}

void AppendLine(const fs::path& file, const std::string& line) {
  const UniqueFd fd(
      ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) ThrowErrno(file, "open", errno);
  const ssize_t written = ::write(fd.get(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) ThrowErrno(file, "write", errno);
}

}  // namespace

void MathComparer::KeepIn(const fs::path& cache_dir) {
  if (cache_dir == cache_dir_) return;
  cache_dir_ = cache_dir;
  kept_.clear();
}

MathVerifier& MathComparer::Verifier() {
  if (verifier_ == nullptr) {
    verifier_ = std::make_unique<MathVerifier>(options_, nullptr, seconds_per_pair_);
    std::string versions =
        HashOf({ToLine(verifier_->versions()), fmt::format("{}", seconds_per_pair_)});
    if (versions != versions_) kept_.clear();
    versions_ = std::move(versions);
  }
  return *verifier_;
}

fs::path MathComparer::FileOf(const std::string& key) const {
  return cache_dir_ / "math" / versions_.substr(0, 16) / (key.substr(0, 2) + ".txt");
}

MathComparer::Verdicts& MathComparer::Kept(const std::string& key) {
  const auto found = kept_.find(key.substr(0, 2));
  if (found != kept_.end()) return found->second;
  Verdicts& verdicts = kept_[key.substr(0, 2)];
  if (!cache_dir_.empty()) verdicts = ReadVerdicts(FileOf(key));
  return verdicts;
}

void MathComparer::Keep(const std::string& key, Verdict verdict) {
  Kept(key)[key] = verdict;
  if (cache_dir_.empty()) return;
  const auto* const word = std::find_if(std::begin(kWords), std::end(kWords),
                                        [&](const auto& one) { return one.first == verdict; });
  const fs::path file = FileOf(key);
  try {
    MakeDirectories(file.parent_path());
    std::error_code none;
    if (fs::exists(file, none) && fs::file_size(file, none) > kVerdictFileBytesMax) return;
    AppendLine(file, fmt::format("{} {}\n", key, word->second));
  } catch (const Error& error) {
    log::Debug("a verdict of math_verify is not kept: {}", error.message());
  }
}

MathComparer::Verdict MathComparer::Compare(const std::string& gold, const std::string& answer,
                                            const Json& settings) {
  if (std::max(gold.size(), answer.size()) > kTextBytesMax) return Verdict::kTooLong;
  if (versions_.empty()) Verifier();
  const std::string key = HashOf({versions_, ToLine(settings), gold, answer});
  const Verdicts& kept = Kept(key);
  if (const auto found = kept.find(key); found != kept.end()) return found->second;
  ++computed_;
  Verdict verdict = Verdict::kOverLimit;
  switch (Verifier().Compare(gold, answer, settings)) {
    case MathVerifier::Verdict::kEqual:
      verdict = Verdict::kEqual;
      break;
    case MathVerifier::Verdict::kUnequal:
      verdict = Verdict::kUnequal;
      break;
    case MathVerifier::Verdict::kOverLimit:
      Drop();  // its process has ended, or is in an odd state
      break;
  }
  Keep(key, verdict);
  return verdict;
}

}  // namespace evald
