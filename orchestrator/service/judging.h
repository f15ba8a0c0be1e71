#pragma once

#include "orchestrator/fleet/fair_threads.h"

namespace evald {

/// Threads that have submissions, watches and resumed runs judged. A judgement has evald-prepare
/// read what a configuration names, which may take a minute. So users take turns, and few of a
/// user's judgements wait.
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
