#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace evald {

/// The progress of one phase of a run.
struct PhaseProgress {
  std::string name;  ///< stage, prepare, generate, score
  int64_t done = 0;
  int64_t total = 0;   ///< 0: not known yet
  bool bytes = false;  ///< counts bytes and not things
  std::string note;    ///< "18 requests/s", "kept from an earlier run"
};

struct TaskProgress {
  std::string name;
  int64_t documents = 0;
  int64_t generated = 0;
  int64_t scored = 0;
  std::string headline;  ///< "exact_match 0.4150" when the task is done
};

struct ProgressSnapshot {
  double elapsed_s = 0;
  double remaining_s = -1;     ///< -1: not known yet
  double documents_per_s = 0;  ///< generated; 0: not known yet
  std::vector<PhaseProgress> phases;
  std::vector<TaskProgress> tasks;
  std::string remark = {};  ///< a line of its own below the time
  /// In place of the time left, of a run that is to stop: what is being waited for
  std::string notice = {};
  double notice_s = -1;  ///< how long that may take yet; -1: not known
  /// Of a run that is to stop: documents that are leased and not generated
  int64_t leased_documents = 0;
};

/// An estimate of the time left that goes down with the clock between two estimates that differ
/// little.
class Countdown {
 public:
  /// Seconds left at `now_s`, whose latest estimate is `estimate_s`; -1 if that is (not known).
  double Left(double estimate_s, double now_s);

 private:
  double end_s_ = -1;  // on the clock of `now_s`
};

/// Shows progress on standard error: on a terminal a block of bars that is redrawn in place,
/// otherwise a line every few seconds and at each task's end. Loop thread only.
class ProgressDisplay {
 public:
  /// With `quiet`, shows nothing.
  explicit ProgressDisplay(bool quiet);
  /// Leaves the last block on the screen.
  ~ProgressDisplay();

  void Show(const ProgressSnapshot& snapshot);
  /// Redraws once more with the last state.
  void Finish(const ProgressSnapshot& snapshot);

 private:
  void Redraw(const ProgressSnapshot& snapshot);
  void PrintLine(const ProgressSnapshot& snapshot, bool last);

  bool quiet_;
  bool terminal_;
  int lines_drawn_ = 0;
  double next_line_at_s_ = 0;
  std::vector<std::string> announced_;
  std::string noticed_;
};

/// The lines of the block, at most `columns` wide and `rows` many. Separate from I/O for tests.
std::vector<std::string> RenderProgress(const ProgressSnapshot& snapshot, int columns, int rows);

}  // namespace evald
