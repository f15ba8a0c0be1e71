#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "evald/json.h"
#include "orchestrator/prepare/child.h"
#include "orchestrator/prepare/input.h"
#include "orchestrator/run/preparation.h"

namespace evald {

/// Has other people's files read and prepared by a process of its own (evald-prepare), which is
/// confined (prepare/confine.h) and whose answers are read with bounds. Whatever is in the files,
/// it ends in an answer or in one Error:
///
///   - as the process says: kUsage or kInput for what is wrong with a file, with its name;
///   - kInput, with what was being done and the key that raises the limit, where it took more time or memory than
///     `limits` allow, or where it broke down;
///   - kInfrastructure where it cannot be started, was cancelled, or was killed by others, twice.
///
/// A process that others kill (an operator, the kernel for want of memory) is started once more.
/// Each call waits; the process ends with the calling thread. Any thread.
class Preparer {
 public:
  /// `binaries` is the folder of evald-prepare.
  explicit Preparer(std::filesystem::path binaries);

  /// As PrepareSuite. `progress` is called from this thread. Where `cancelled` says so, the process
  /// is asked to end, so that it leaves a sound cache, and is killed two seconds later.
  Suite Prepare(const PreparationInput& input,
                const std::function<void(size_t done, size_t total)>& progress,
                const Cancelled& cancelled) const;

  /// As CheckInput, DescribeInput or JudgeInput, by `input.work`. Where `cancelled` says so, the
  /// process is killed at once, since it only reads.
  Json Ask(const PreparationInput& input, const Cancelled& cancelled = nullptr) const;
  /// The same for kJudge.
  Judgement Judge(const PreparationInput& input, const Cancelled& cancelled = nullptr) const;
  /// The same for results that stand whatever becomes of their gates: where Judge throws, the cause
  /// is logged, and NotJudged is what it comes to.
  Judgement JudgeOrSayWhy(const PreparationInput& input,
                          const Cancelled& cancelled = nullptr) const;

 private:
  using OnMessage = std::function<void(const Json& message)>;
  void Run(const PreparationInput& input, const Cancelled& cancelled,
           const OnMessage& on_message) const;

  std::filesystem::path program_;
};

}  // namespace evald
