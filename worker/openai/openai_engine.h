#pragma once

#include <memory>

#include "worker/engine.h"

namespace evald {

/// Drives an external server through its OpenAI-compatible completions API: one that it starts on
/// the staged checkpoint (`command`), watches and starts again when it dies, or one that is given
/// (`base_url`). Settings and their defaults: worker/openai/options.h.
///
/// Log-likelihoods are offered only when prompts go as tokens and the self-test of Load has shown
/// that the server scores prompts rightly; LoadReport()["scoring"] says why not. Scoring in rolling
/// windows is not offered.
std::unique_ptr<Engine> MakeOpenaiEngine(const EngineOptions& options);

}  // namespace evald
