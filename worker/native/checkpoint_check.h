#pragma once

#include <cstdint>

#include "base/read_roots.h"

namespace evald {

/// Checks that the native engine can serve the checkpoint of `folder`: config.json, and the name,
/// shape and type of every tensor. Only config.json and the headers of weights are read.
/// `max_length` is the engine's setting, 0 if it is absent. Throws the errors that loading would
/// throw: Error(kInput), and Error(kUsage) for a max_length beyond the context. Returns the context
/// length in tokens.
int64_t CheckNativeCheckpoint(const ReadFolder& folder, int64_t max_length);

}  // namespace evald
