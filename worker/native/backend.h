#pragma once

#include <cstdint>
#include <filesystem>

#include "evald/engine_info.h"
#include "evald/error.h"
#include "evald/json.h"
#include "worker/engine/engine.h"
#include "worker/native/config.h"
#include "worker/native/device.h"
#include "worker/native/kv_cache.h"
#include "worker/native/weights.h"

namespace evald::native {

/// The hardware of a native engine: makes a device and a cache for a checkpoint, and knows how much
/// to compute at once. The engine's thread is its only caller, except for Pulled.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Fills in version, deterministic, concurrency, device, and the members that tell this device
  /// from others of its kind.
  virtual void Describe(EngineInfo* info) const = 0;

  /// Engine::Follow. The engine uses neither device() nor cache() until the next Load has
  /// succeeded.
  virtual void Follow(const std::filesystem::path& /*staging*/) {}

  /// Makes device() compute with `weights` of the checkpoint in `directory`, and makes an empty
  /// cache() for them. `config` and `weights` must stay until the next Load or the end. Before the
  /// call, every page of the cache must have been given back, and the device must no longer be in
  /// use. Afterwards, device() and cache() may be the same objects as before. Throws Error; then
  /// there is no device until another Load.
  virtual void Load(const std::filesystem::path& directory, const ModelConfig& config,
                    const ModelWeights& weights) = 0;
  virtual Device* device() = 0;
  virtual KvCache* cache() = 0;
  /// {"bytes", …} of the last Load, for Engine::LoadReport.
  virtual Json LoadReport() const = 0;
  /// A description of the work since the last Load, for Engine::WorkReport.
  virtual Json WorkReport() const { return Json::object(); }
  /// The progress of Load. Any thread may call it.
  virtual LoadProgress Pulled() const { return {}; }

  /// Sequences computed at once.
  virtual int slots() const = 0;
  /// The most rows for the next batch. Does not change any answer.
  virtual int64_t RowsOfBatch() const = 0;
  /// A batch of `rows` rows has taken `micros`.
  virtual void Computed(int64_t /*rows*/, int64_t /*micros*/) {}

  /// Whether this error makes the device unusable for the rest of the process.
  virtual bool Breaks(const Error& /*error*/) const { return false; }
};

}  // namespace evald::native
