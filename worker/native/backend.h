#pragma once

#include <cstdint>
#include <filesystem>

#include "evald/engine_info.h"
#include "evald/error.h"
#include "evald/json.h"
#include "worker/engine.h"
#include "worker/native/config.h"
#include "worker/native/device.h"
#include "worker/native/kv_cache.h"
#include "worker/native/weights.h"

namespace evald::native {

/// What the native engine computes on: makes a device and a cache for a checkpoint, and knows how
/// much it does at once. The engine's thread is its only caller, but for Pulled.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Fills in version, deterministic, concurrency, device, and what tells this device from others
  /// of its kind.
  virtual void Describe(EngineInfo* info) const = 0;

  /// Engine::Follow: the engine uses neither device() nor cache() until the next Load has
  /// succeeded.
  virtual void Follow(const std::filesystem::path& /*staging*/) {}

  /// Makes `weights`, of the checkpoint in `directory`, those that device() computes with, and an
  /// empty cache() for them. `config` and `weights` stay until the next Load or the end. Before it,
  /// every page of the cache has been given back and nobody uses the device of before; both may be
  /// the same afterwards. Throws Error; then there is no device until another Load.
  virtual void Load(const std::filesystem::path& directory, const ModelConfig& config,
                    const ModelWeights& weights) = 0;
  virtual Device* device() = 0;
  virtual KvCache* cache() = 0;
  /// {"bytes", …}: of the last Load, for Engine::LoadReport.
  virtual Json LoadReport() const = 0;
  /// How far Load has come. Any thread.
  virtual LoadProgress Pulled() const { return {}; }

  /// Sequences computed at once.
  virtual int slots() const = 0;
  /// Rows of the next batch, at most. Never changes a number.
  virtual int64_t RowsOfBatch() const = 0;
  /// A batch of so many rows has taken so long.
  virtual void Computed(int64_t /*rows*/, int64_t /*micros*/) {}

  /// Whether this error leaves the device unusable until the process is another.
  virtual bool Breaks(const Error& /*error*/) const { return false; }
};

}  // namespace evald::native
