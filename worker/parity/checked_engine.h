#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "worker/engine/engine.h"

namespace evald::parity {

/// When an engine is checked.
struct CheckSettings {
  std::chrono::milliseconds budget{10'000};  ///< for the reference of one load; 0: never checked
  int threads = 1;                           ///< of the reference, while it is computed
  /// A folder that remembers what has passed; empty: every load is checked. The folder is private
  /// to this user.
  std::filesystem::path memory;
};

/// `engine`, checked after a load before it answers. Its scores are held against those of evald's
/// own engine on the processor (parity_check.h). An engine that passes with all parts is
/// remembered, by the kind and driver of its device, its version, and the checkpoint's architecture
/// and type: later loads of such checkpoints are not checked.
///
/// An engine that differs throws Error(kInfrastructure) from Load and is Broken, since its device
/// computes wrongly. LoadReport has "parity", and Info says what came of it.
std::unique_ptr<Engine> Checked(std::unique_ptr<Engine> engine, const CheckSettings& settings);

}  // namespace evald::parity
