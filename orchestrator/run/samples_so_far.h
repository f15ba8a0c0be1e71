#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/file.h"
#include "evald/error.h"

namespace evald {

/// The samples of those documents of a task that were scored when somebody asked, in the form of
/// samples_<task>.jsonl. The file has no name, and is gone with the last owner of this.
struct SamplesSoFar {
  UniqueFd file;
  int64_t scored = 0;     ///< documents in the file
  int64_t documents = 0;  ///< of the task
};

/// What the name of that file, while it has one, has after samples_<task>.jsonl.
inline constexpr const char* kSoFar = ".so-far";

/// The samples, or nothing if no document is scored; or why they cannot be read.
using SamplesSoFarDone = std::function<void(std::shared_ptr<const SamplesSoFar> samples,
                                            const std::optional<Error>& error)>;

}  // namespace evald
