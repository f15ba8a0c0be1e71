#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "evald/json.h"
#include "orchestrator/prepare/child.h"
#include "orchestrator/prepare/input.h"
#include "orchestrator/prepare/preparation.h"

namespace evald {

/// Has other people's files read and prepared by a process of its own (evald-prepare). The process
/// is confined (prepare/confine.h), and its answers are read with bounds. Whatever the files hold,
/// the result is an answer or one Error:
///
///   - the process's own: kUsage or kInput for a fault in a file, with the file's name;
///   - kInput, with the step under way and the key that raises the limit, if it took more time or
///     memory than `limits` allow, or if it crashed;
///   - kInfrastructure if it cannot be started, was cancelled, or was killed twice by others.
///
/// A process that others kill (an operator, or the kernel for want of memory) is started once more.
/// Each call blocks. The process ends with the calling thread. Any thread.
class Preparer {
 public:
  /// `binaries` is the folder of evald-prepare.
  explicit Preparer(std::filesystem::path binaries);

  /// Like PrepareSuite. `progress` is called on this thread. If `cancelled` becomes true, the
  /// process is asked to end, so that it leaves a sound cache, and is killed two seconds later.
  Suite Prepare(const PreparationInput& input,
                const std::function<void(size_t done, size_t total)>& progress,
                const Cancelled& cancelled) const;

  /// Like CheckInput, DescribeInput or JudgeInput, by `input.work`. If `cancelled` becomes true,
  /// the process is killed at once, since it only reads.
  Json Ask(const PreparationInput& input, const Cancelled& cancelled = nullptr) const;
  /// The same for kJudge.
  Judgement Judge(const PreparationInput& input, const Cancelled& cancelled = nullptr) const;
  /// The same for results that count whatever happens to their gates. If Judge throws, the cause is
  /// logged and NotJudged is returned.
  Judgement JudgeOrSayWhy(const PreparationInput& input,
                          const Cancelled& cancelled = nullptr) const;

 private:
  using OnMessage = std::function<void(const Json& message)>;
  void Run(const PreparationInput& input, const Cancelled& cancelled,
           const OnMessage& on_message) const;

  std::filesystem::path program_;
};

}  // namespace evald
