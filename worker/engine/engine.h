#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "evald/engine_info.h"
#include "evald/error.h"
#include "evald/generation.h"
#include "evald/json.h"
#include "evald/request.h"
#include "worker/engine/token_watch.h"

namespace evald {

/// An error of the host or of a server that another try would not mend.
class LastingError : public Error {
 public:
  LastingError(const std::string& message, const std::string& remedy)
      : Error(ErrorKind::kInfrastructure, message, remedy) {}
};

/// A finished request: the `tag` of its submission, and its answer, or the reason why it can never
/// have one.
struct Finished {
  uint64_t tag = 0;
  Generation generation;                        ///< without meaning if `refused` is set
  std::optional<Error> refused = std::nullopt;  ///< an Error(kInput) that names the request
};

/// The progress of a Load, in bytes. Zeros if an engine does not report it.
struct LoadProgress {
  int64_t done = 0;
  int64_t total = 0;
};

/// The OpenAI-compatible API of a server that an engine asks.
struct ServedApi {
  std::string url;                    ///< "http://127.0.0.1:8000", without /v1
  std::filesystem::path unix_socket;  ///< the server listens here instead, and `url` names no host
  std::string key;                    ///< that the server asks for; "": none
  std::string model;                  ///< the name in requests
  std::function<bool()> alive;        ///< whether the server still runs; the engine's thread only
};

/// Turns requests into generations. The worker's engine thread owns an Engine and is its only
/// caller. Requests may be submitted at any time, also while others are under way. Step computes
/// for a bounded time and returns finished requests, in any order.
///
/// Failures: Error(kInput) for a checkpoint or request that can never work (names the file, the
/// tensor or the document), and Error(kInfrastructure) if another try may succeed. After an
/// exception from Step the engine holds no requests. An engine that knows which request cannot be
/// answered returns it as refused instead, and goes on with the others.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineInfo Info() const = 0;

  /// Makes the (staged) checkpoint in `directory` the one that answers, and maps or pulls its
  /// weights. Called before the first Submit, and again for another checkpoint when no request is
  /// pending.
  virtual void Load(const std::filesystem::path& directory) = 0;

  /// A checkpoint is being staged into `staging` (checkpoint/landed.h). If the engine's Info says
  /// that it follows, it begins to pull landed data in the background; the checkpoint loaded before
  /// no longer answers. Next comes the Load of the published checkpoint or, if staging fails, of
  /// another. Called when no request is pending. Returns at once and never throws: Load reports
  /// errors, and its report has {"followed": bytes} if following helped.
  virtual void Follow(const std::filesystem::path& /*staging*/) {}

  /// Takes a request. `tag` is the caller's, and unique among pending requests.
  virtual void Submit(uint64_t tag, Request request) = 0;

  /// Whether SubmitWatched is served.
  virtual bool reports_tokens() const { return false; }

  /// Submit, and tells `watch` each token of the answer. For kGenerateUntil and kLoglikelihood. The
  /// answer is the same as without a watch. Throws Error(kUsage) if the engine reports no tokens.
  virtual void SubmitWatched(uint64_t tag, Request request, TokenWatch watch);

  /// The answer to this request is no longer wanted. Returns true if the request is forgotten.
  /// Returns false if no request has this tag, or if the engine cannot forget one alone: it then
  /// answers the request as before. Not called during Step.
  virtual bool Cancel(uint64_t /*tag*/) { return false; }

  /// Computes until a request has finished or `budget` has passed. A batch that has begun is
  /// computed to its end, which may take seconds. Returns nothing at once if no request is pending.
  virtual std::vector<Finished> Step(std::chrono::milliseconds budget) = 0;

  /// Number of submitted requests not yet returned.
  virtual size_t pending() const = 0;

  /// Forgets all pending requests.
  virtual void CancelAll() = 0;

  /// The API of the server that answers for the loaded checkpoint; a server that died is started
  /// again. None for an engine that computes itself. No request is pending.
  virtual std::optional<ServedApi> Api() { return std::nullopt; }

  /// Facts of the last Load for the log and the timeline: {"bytes":…, "seconds":…, …}.
  virtual Json LoadReport() const { return Json::object(); }

  /// Work since Load, for benchmarks: {"rows_computed":…, "rows_reused":…}, where rows are tokens.
  /// Empty if the engine does not count it.
  virtual Json WorkReport() const { return Json::object(); }

  /// The progress of the Load under way. Any thread may call it.
  virtual LoadProgress Loading() const { return {}; }

  /// Throws Error(kInput) if a program that the engine starts is not on this host, so that it is
  /// said before anything is staged.
  virtual void RequirePrograms() const {}

  /// Why this engine can answer nothing any more, for example because its device is lost or a
  /// kernel failed. Known after an exception from Load or Step. Its process must end.
  virtual std::optional<std::string> Broken() const { return std::nullopt; }
};

inline void Engine::SubmitWatched(uint64_t /*tag*/, Request /*request*/, TokenWatch /*watch*/) {
  throw Error(ErrorKind::kUsage, "engine '" + Info().name + "' does not report single tokens");
}

/// A worker's options for its engine.
struct EngineOptions {
  std::string name;      ///< one of engines/
  Json settings;         ///< the keys under `engine:` in eval.yaml, without `name`
  std::string device;    ///< "cpu:0", "cuda:<uuid>"
  int threads = 1;       ///< CPU threads it may use
  uint64_t seed = 1234;  ///< of the random generator that draws tokens
  /// Folders below which the engine reads files that a run names, other than a staged checkpoint
  ReadRoots roots;
};

}  // namespace evald
