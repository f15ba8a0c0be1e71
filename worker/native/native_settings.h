#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/generation_config.h"
#include "evald/json.h"

namespace evald::native {

/// The settings of the native engine (docs/engines.md). All devices take the same keys, so that one
/// eval.yaml serves them all; each ignores the keys of others.
struct NativeSettings {
  int max_length = 0;              ///< tokens; 0: the checkpoint's
  uint64_t kv_cache = 0;           ///< bytes; 0: the device's default
  std::optional<int> concurrency;  ///< sequences computed at once; absent: the device's default
  std::optional<int> chunk;        ///< most rows computed at once; absent: as above
  std::string kernels = "auto";    ///< CPU: the instruction set
  /// Whether the checkpoint's generation settings are in force.
  GenerationConfig::Use generation_config = GenerationConfig::Use::kCheckpoint;
  bool fast = false;           ///< GPU: the library chooses the algorithms
  bool graphs = true;          ///< GPU: batches of single tokens are captured and replayed
  bool ahead = true;           ///< GPU: queues a batch before the last one's answers are there
  double parity_seconds = 10;  ///< GPU: for the reference of the parity check; 0: none is made
  int copy_threads = 0;        ///< GPU: threads of the pull; 0: the default
};

/// Throws SettingError naming the key.
NativeSettings ReadNativeSettings(const Json& json);

/// The budget of a cache of keys and values: the settings' value, otherwise `by_default`; at least
/// one page. Throws Error(kUsage) if the settings give less than a page, or more than `most`, the
/// memory of the device (0: not known).
uint64_t CacheBudget(const NativeSettings& settings, uint64_t by_default, uint64_t most,
                     uint64_t page_bytes);

}  // namespace evald::native
