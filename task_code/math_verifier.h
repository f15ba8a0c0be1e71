#pragma once

#include <functional>
#include <memory>
#include <string>

#include "evald/json.h"
#include "metrics/sandbox/box.h"
#include "task_code/task_code.h"

namespace evald {

/// Compares answers of mathematics by value, by the package math-verify of a user's Python. Answers
/// are not trusted, so they are read in the sandbox. One thread at a time.
class MathVerifier {
 public:
  /// The processor time that a pair may take.
  static constexpr double kSecondsPerPair = 5;

  /// Starts the process and imports the package, which takes about a second. `boxes` makes the
  /// process for a process that may start none itself; null: this process starts it. Of `options`,
  /// `python` and `memory_bytes` count, and kUnsafe. Throws Error(kInput) with the command that
  /// installs the package if the Python lacks it, and Error(kInfrastructure) if the interpreter is
  /// unusable or the host cannot isolate the process.
  explicit MathVerifier(const TaskCodeOptions& options, sandbox::BoxMaker* boxes = nullptr,
                        double seconds_per_pair = kSecondsPerPair);

  /// {"python": version, "packages": {name: version}}: math-verify and what it computes with.
  const Json& versions() const { return versions_; }

  enum class Verdict { kEqual, kUnequal, kOverLimit };

  /// Compares as math-verify's verify(parse(gold), parse(answer)) does. `settings` are arguments of
  /// verify. If the pair takes more processor time or memory than it may, the process has ended
  /// afterwards: each later call throws.
  Verdict Compare(const std::string& gold, const std::string& answer, const Json& settings);

  void StopWhen(std::function<bool()> stopped) { box_.StopWhen(std::move(stopped)); }

 private:
  Json Call(const Json& call, double wall_seconds);

  std::string python_;
  double seconds_per_pair_;
  sandbox::Box box_;
  Json versions_;
};

}  // namespace evald
