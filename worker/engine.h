#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "evald/engine_info.h"
#include "evald/generation.h"
#include "evald/json.h"
#include "evald/request.h"

namespace evald {

/// A finished request: the `tag` it was submitted under and its answer.
struct Finished {
  uint64_t tag = 0;
  Generation generation;
};

/// How far a Load has come, in bytes. Zeros where an engine does not say.
struct LoadProgress {
  int64_t done = 0;
  int64_t total = 0;
};

/// Turns requests into generations. The worker's engine thread owns an Engine and is its only
/// caller. Requests are submitted at any time, also while others are under way; Step computes for a
/// bounded time and returns what has finished, in any order.
///
/// Failures: Error(kInput) for a checkpoint or request that can never work (names the file, the
/// tensor or the document), Error(kInfrastructure) for what may work another time. After an
/// exception from Step the engine holds no requests.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineInfo Info() const = 0;

  /// Makes the (staged) checkpoint in `directory` the one that answers; maps or pulls its weights.
  /// Called before the first Submit, and again for another checkpoint when nothing is pending.
  virtual void Load(const std::filesystem::path& directory) = 0;

  /// A checkpoint is being staged into `staging` (checkpoint/landed.h). An engine whose Info says
  /// that it follows begins to pull what has landed, in the background; what was loaded before
  /// answers no more. The Load of what is published comes next, or of something else where that
  /// fails. Called when nothing is pending. Returns at once and never throws: Load says what is
  /// wrong, and its report has {"followed": bytes} where this was of use.
  virtual void Follow(const std::filesystem::path& /*staging*/) {}

  /// Takes a request. `tag` is the caller's, unique among the pending ones.
  virtual void Submit(uint64_t tag, Request request) = 0;

  /// Computes until something has finished or `budget` has passed; what has begun is computed to
  /// its end, which may take seconds. Returns at once with nothing when nothing is pending.
  virtual std::vector<Finished> Step(std::chrono::milliseconds budget) = 0;

  /// Number of submitted requests not yet returned.
  virtual size_t pending() const = 0;

  /// Forgets all pending requests.
  virtual void CancelAll() = 0;

  /// What Load did, for the log and the timeline: {"bytes":…, "seconds":…, …}.
  virtual Json LoadReport() const { return Json::object(); }

  /// What has been computed since Load, for benchmarks: {"rows_computed":…, "rows_reused":…}, rows
  /// being tokens. An engine that does not know says nothing.
  virtual Json WorkReport() const { return Json::object(); }

  /// How far the Load that is under way has come. Any thread may ask.
  virtual LoadProgress Loading() const { return {}; }

  /// Why this engine answers nothing any more, whatever it is asked: its device is lost, or a
  /// kernel failed, say. Known after an exception from Load or Step. Its process has to end.
  virtual std::optional<std::string> Broken() const { return std::nullopt; }
};

/// What a worker was told about its engine.
struct EngineOptions {
  std::string name;      ///< native, openai, replay or emulated
  Json settings;         ///< the keys under `engine:` in eval.yaml, without `name`
  std::string device;    ///< "cpu:0", "cuda:<uuid>"
  int threads = 1;       ///< CPU threads it may use
  uint64_t seed = 1234;  ///< keys the sampling generator
  ReadRoots roots;  ///< below which it reads files that a run names, other than a staged checkpoint
};

/// Makes an engine. Throws Error(kUsage) naming an unknown engine or setting and the nearest known.
std::unique_ptr<Engine> MakeEngine(const EngineOptions& options);

}  // namespace evald
