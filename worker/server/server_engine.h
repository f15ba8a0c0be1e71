#pragma once

#include <memory>

#include "worker/engine/engine.h"

namespace evald {

/// Drives an external server through its OpenAI-compatible completions API. Either the engine
/// starts the server on the staged checkpoint (`command`), watches it and restarts it if it dies,
/// or the server is given (`base_url`). Settings and their defaults: worker/server/options.h.
///
/// Log-likelihoods are offered only if prompts go as tokens and the self-test of Load has shown
/// that the server scores prompts correctly; otherwise LoadReport()["scoring"] says why not.
/// Scoring in rolling windows is not offered.
std::unique_ptr<Engine> MakeServerEngine(const EngineOptions& options);

}  // namespace evald
