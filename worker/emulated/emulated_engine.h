#pragma once

#include <memory>

#include "worker/engine/engine.h"

namespace evald {

/// An engine without a model, for tests of the orchestrator at scale. Each request takes a modelled
/// time on one of `concurrency` slots. The answer depends on (seed, request) alone, so it is the
/// same on every worker and at every attempt. EngineInfo::emulated is true.
///
/// Settings, all optional. Times are seconds of the model; `clock_scale` times these are seconds of
/// the clock:
///
///     delay_ms: 0                   fixed part of a request
///     prefill_tokens_per_second: 0  adds prompt tokens / this; 0: nothing
///     tokens_per_second: 0          adds generated tokens / this; 0: nothing
///     jitter: 0                     0 to 1: a request takes (1 ± jitter) times as long; by seed
///     slow: {}                      devices whose requests take so many times as long without
///                                   reporting it: {"cpu:1": 10}
///     load_seconds: 0               time that Load takes
///     clock_scale: 1                0.1 runs ten times as fast
///     concurrency: 8                slots
///     max_length: 4096              context length that it reports
///     tokens_out: 16                a number, or [least, most]: drawn evenly, by seed
///     text: ""                      the answer; {doc_id}, {idx}, {repeat}, {task} are replaced;
///                                   "": as many pseudo-words as tokens_out says
///     fail_rate: 0                  0 to 1: share of requests whose Step throws
///                                   Error(kInfrastructure), drawn anew at every attempt
///
/// Two paths for tests and benchmarks come from the environment of the worker process and never
/// from the settings, since a submitted run sets those:
///
///     EVALD_EMULATED_TIMES     a folder with <task>.f32 (the name as FolderNameOf gives it): the
///                              seconds of each document's requests as little-endian 32-bit floats,
///                              instead of the times above
///     EVALD_EMULATED_JOURNAL   a file to which each answer adds a line as it is given,
///                              "<task> <doc_id> <idx> <repeat>"; to count work that is done twice
///
/// A prompt has one token per 4 bytes, unless the request carries tokens.
std::unique_ptr<Engine> MakeEmulatedEngine(const EngineOptions& options);

}  // namespace evald
