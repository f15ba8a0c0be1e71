#pragma once

#include <memory>

#include "worker/engine/engine.h"

namespace evald {

/// Answers from generations that were made earlier, to score a run again without a model.
///
/// Setting `generations` (required): a run's folder, its `generations` folder with a folder per
/// task, a folder of `<task>.jsonl` files, or a single file, which then answers for one task.
/// Several lines of one key must be equal.
///
/// Keeps an index of the lines, not the lines: the files are mapped. Submit throws Error(kInput)
/// naming task, document, request and repeat if the files have no answer.
std::unique_ptr<Engine> MakeReplayEngine(const EngineOptions& options);

}  // namespace evald
