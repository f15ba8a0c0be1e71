#pragma once

#include <memory>

#include "worker/engine/engine.h"

namespace evald {

/// Drives an external server through its OpenAI-compatible completions API, and what more its
/// dialect has (worker/server/dialect.h). Either the engine starts the server on the staged
/// checkpoint, watches it and restarts it if it dies, or the server is given (`base_url`). The next
/// checkpoint's weights are exchanged in the running server where that is safe. Settings and their
/// defaults: worker/server/options.h.
///
/// Log-likelihoods, rolling ones too, are offered only if prompts go as tokens and the self-test of
/// Load has shown that the server scores prompts correctly; otherwise LoadReport()["scoring"] says
/// why not.
std::unique_ptr<Engine> MakeServerEngine(const EngineOptions& options);

}  // namespace evald
