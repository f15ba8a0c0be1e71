#pragma once

#include <cstdint>
#include <vector>

#include "worker/committer.h"

namespace evald {

/// Turns the engine thread's work into `generate` and `idle` spans that follow one another without
/// overlap. Spans shorter than 100 ms are merged into their neighbours. Long spans are sent in
/// parts of 5 s, so that little is lost if a worker is killed. A `generate` span tells how much of
/// it the engine computed ("device_seconds") and which trials ended in it ("trials"). Times are
/// microseconds of the monotonic clock. For one thread at a time.
class Timeline {
 public:
  Timeline(Sender send, int64_t now);

  void Busy(int64_t now);
  void Idle(int64_t now);
  void Computed(int64_t micros) { computed_ += micros; }
  void TrialFinished(int64_t trial, int64_t now);
  /// Leaves [begin, end) out: it has a span of its own.
  void Skip(int64_t begin, int64_t end);
  void Close(int64_t now);

 private:
  void EmitGenerate(int64_t end);
  void EmitIdle(int64_t end);

  Sender send_;
  bool busy_ = false;
  int64_t begin_;       ///< of the open generate span
  int64_t idle_begin_;  ///< while not busy
  int64_t computed_ = 0;
  std::vector<int64_t> trials_;
};

}  // namespace evald
