#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "evald/json.h"
#include "task_code/math_verifier.h"
#include "task_code/task_code.h"

namespace evald {

/// Compares answers of mathematics by value, each pair once: verdicts are kept by content in files,
/// which later jobs and runs read. One thread at a time; several processes may keep verdicts in one
/// folder.
class MathComparer {
 public:
  /// Longer texts are not compared.
  static constexpr size_t kTextBytesMax = size_t{1} << 20;

  enum class Verdict {
    kEqual,
    kUnequal,
    kOverLimit,  ///< the comparison takes too much processor time
    kTooLong,    ///< a text has more than kTextBytesMax
  };

  explicit MathComparer(TaskCodeOptions options,
                        double seconds_per_pair = MathVerifier::kSecondsPerPair)
      : options_(std::move(options)), seconds_per_pair_(seconds_per_pair) {}

  /// Keeps verdicts from now on in a folder of this cache (docs/formats.md). A folder that cannot
  /// be written costs time, and nothing else.
  void KeepIn(const std::filesystem::path& cache_dir);

  /// Throws like MathVerifier's constructor, which the first call that needs the process runs.
  Verdict Compare(const std::string& gold, const std::string& answer, const Json& settings);

  /// Ends the process. The next comparison starts it anew.
  void Drop() { verifier_.reset(); }

  /// Pairs that were given to the process so far.
  int64_t computed() const { return computed_; }

 private:
  using Verdicts = std::map<std::string, Verdict, std::less<>>;

  MathVerifier& Verifier();
  Verdicts& Kept(const std::string& key);
  std::filesystem::path FileOf(const std::string& key) const;
  void Keep(const std::string& key, Verdict verdict);

  TaskCodeOptions options_;
  double seconds_per_pair_;
  std::unique_ptr<MathVerifier> verifier_;
  std::string versions_;  ///< a hash of those that decide verdicts; "" until they are known
  std::filesystem::path cache_dir_;                    ///< empty: verdicts are kept in memory alone
  std::map<std::string, Verdicts, std::less<>> kept_;  ///< by the file's name
  int64_t computed_ = 0;
};

}  // namespace evald
