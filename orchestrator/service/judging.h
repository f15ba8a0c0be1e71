#pragma once

#include "orchestrator/fleet/fair_threads.h"

namespace evald {

/// Threads that have submissions, watches and resumed runs judged. A judgement may take a minute:
/// evald-prepare reads the files that a configuration names. So users take turns, and a user may
/// have only a few judgements waiting.
class Judging : public FairThreads {
 public:
  static constexpr int kThreads = 2;
  static constexpr size_t kWaitingMax = 256;
  static constexpr size_t kWaitingPerUserMax = 32;

  /// `loop` outlives this.
  explicit Judging(Loop* loop)
      : FairThreads("judges", loop, {kThreads, kWaitingMax, kWaitingPerUserMax}) {}
};

}  // namespace evald
