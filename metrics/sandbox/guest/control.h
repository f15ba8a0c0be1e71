#pragma once

#include <stddef.h>

namespace evald::guest {

// The stream to the runner (kControlFd), for the zygote and the keeper.

/// Reads so many bytes. False at the end of the stream.
bool ReadAll(void* data, size_t bytes);

/// Writes so many bytes. False if the runner has gone.
bool SendAll(const void* data, size_t bytes);

/// Whether the runner has closed its end, without waiting.
bool RunnerHasGone();

}  // namespace evald::guest
