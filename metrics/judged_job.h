#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "metrics/judge/panel.h"
#include "protocol/messages.h"

namespace evald {

/// How the documents of a job with a judge are scored.
struct JudgedWork {
  /// The scores line of a document. While its judges are being asked, the line counts nothing: the
  /// panel then has missing questions (JudgePanel::TakeMissing). Throws NotJudged for a document
  /// that cannot be judged.
  std::function<std::string(int64_t document)> line;
  /// Takes the lines in order of their documents.
  std::function<void(const std::string& line)> append;
  std::chrono::microseconds time{0};  ///< afterwards no further document is begun
};

/// Scores the documents of `job` with as many calls of the judge under way as its settings say.
/// Ends early, with at least one document, when the work's time has passed, when the judge is taken
/// to be down, or when too many documents cannot be judged; sets `unscored`, `stopped` and `end` of
/// `result`. Counts documents in `done`. Returns false, and has appended some lines, if `stop` was
/// set.
bool ScoreJudged(const protocol::Job& job, const JudgedWork& work, JudgePanel* panel,
                 const std::atomic<bool>& stop, std::atomic<int64_t>* done,
                 protocol::JobDone* result);

}  // namespace evald
