#pragma once

#include <memory>

#include "worker/engine.h"

namespace evald {

/// An engine without a model, for testing the orchestrator at scale. Each request takes a modelled
/// time on one of `concurrency` slots; the answer is made from (seed, request) alone, so it is the
/// same on every worker and at every attempt. EngineInfo::emulated is true.
///
/// Settings, all optional; seconds of the model, times `clock_scale` gives seconds of the clock:
///
///     delay_ms: 0                   fixed part of a request
///     prefill_tokens_per_second: 0  adds prompt tokens / this; 0: nothing
///     tokens_per_second: 0          adds generated tokens / this; 0: nothing
///     jitter: 0                     0 to 1: a request takes (1 ± jitter) times as long, by its seed
///     slow: {}                      devices whose requests take so many times as long, without saying so:
///                                   {"cpu:1": 10}
///     load_seconds: 0               time that Load takes
///     clock_scale: 1                0.1 runs ten times as fast
///     concurrency: 8                slots
///     max_length: 4096              context length that it says it has
///     tokens_out: 16                a number, or [least, most]: drawn evenly, by the request's seed
///     text: ""                      the answer, with {doc_id}, {idx}, {repeat} and {task} replaced;
///                                   "": as many pseudo-words as tokens_out says
///     fail_rate: 0                  0 to 1: share of requests whose Step throws
///                                   Error(kInfrastructure), drawn anew at every attempt
///
/// Two paths, which are for tests and benchmarks, come from the environment of the worker process
/// and never from the settings, since a submitted run sets those:
///
///     EVALD_EMULATED_TIMES     a folder with <task>.f32 (the name as FolderNameOf gives it): instead of all that,
///                              seconds of each document's requests as little-endian 32-bit floats
///     EVALD_EMULATED_JOURNAL   a file to which each answer adds a line as it is given,
///                              "<task> <doc_id> <idx> <repeat>"; to count what is done twice
///
/// A prompt has one token per 4 bytes, unless the request carries tokens.
std::unique_ptr<Engine> MakeEmulatedEngine(const EngineOptions& options);

}  // namespace evald
