#pragma once

#include <atomic>
#include <vector>

#include "worker/engine/engine.h"
#include "worker/engine/score_window.h"

namespace evald::parity {

/// The log-probabilities of windows by an engine that has loaded a checkpoint and holds no
/// requests: the sum over each window's targets, in nats. Nothing once `*stop` is true, which may
/// leave requests in the engine. Throws what the engine throws.
std::vector<double> ScoresOf(Engine* engine, const std::vector<ScoreWindow>& windows,
                             const std::atomic<bool>* stop = nullptr);

}  // namespace evald::parity
