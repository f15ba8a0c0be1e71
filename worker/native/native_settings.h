#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/generation_config.h"
#include "evald/json.h"

namespace evald::native {

/// The settings of the native engine (docs/engines.md). All devices take the same keys, so that one
/// eval.yaml does for all; each passes over those that are another's.
struct NativeSettings {
  int max_length = 0;              ///< tokens; 0: the checkpoint's
  uint64_t kv_cache = 0;           ///< bytes; 0: the device's default
  std::optional<int> concurrency;  ///< sequences computed at once; absent: the device's default
  std::optional<int> chunk;        ///< rows computed at once, at most; likewise
  std::string kernels = "auto";    ///< CPU: the instruction set
  /// The checkpoint's generation settings are in force, or left out.
  GenerationConfig::Use generation_config = GenerationConfig::Use::kCheckpoint;
  bool fast = false;     ///< GPU: the library's own choice of algorithms
  bool graphs = true;    ///< GPU: batches of single tokens are captured and replayed
  bool ahead = true;     ///< GPU: a batch is queued before the last one's answers are there
  int copy_threads = 0;  ///< GPU: of the pull; 0: the default
};

/// Throws SettingError naming the key.
NativeSettings ReadNativeSettings(const Json& json);

/// The budget of a cache of keys and values: what the settings say, else `by_default`; at least one
/// page. Throws Error(kUsage) when the settings say less than that.
uint64_t CacheBudget(const NativeSettings& settings, uint64_t by_default, uint64_t page_bytes);

}  // namespace evald::native
