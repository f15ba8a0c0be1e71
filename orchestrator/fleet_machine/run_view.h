#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace evald {

/// The facts that decide whether the answers of two engines may stand in one run.
struct EngineFacts {
  std::string name, version;
  std::string device;    ///< the kind of device that the engine computes on
  bool own_gpu = false;  ///< that device is a GPU of the fleet (EngineInfo::device_id is not empty)
  bool operator==(const EngineFacts&) const = default;
};

/// How RunView::load begins where the checkpoint is not staged, but read where it lies: it takes no
/// room.
inline constexpr const char* kUnstagedLoad = "unstaged:";

/// A run as the fleet sees it. The executor fills it in and passes it on whenever it changes; the
/// fleet machine never calls a run.
struct RunView {
  int64_t number = 0;  ///< older runs have smaller ones
  int priority = 0;    ///< higher goes first
  std::string user;
  std::string profile;  ///< what its workers are started with: runs of one profile share workers
  bool native = false;  ///< its engine computes on the fleet's devices, so their kind matters
  std::optional<EngineFacts>
      engine;                   ///< of the first worker that loaded the checkpoint; nothing before
  std::string load;             ///< fingerprint of the Load that a worker needs for it; "" for none
  std::string fingerprint;      ///< of its staged checkpoint; "" where nothing is staged (yet)
  double checkpoint_bytes = 0;  ///< of the staged checkpoint
  std::optional<int64_t> followable;  ///< its staging can be followed; which time it is staged
  bool planned = false;               ///< its trials can be leased
  bool wants_workers = false;         ///< a worker that has the checkpoint would be of use
  bool wants_more_workers = false;    ///< so would a worker that has to load it first
  bool wants_scorers = false;         ///< a metric job is waiting
  bool needs_workers =
      false;  ///< something is left that only a worker can do, whether one is at it or not
  std::optional<double>
      open_s;  ///< device seconds that nobody works on; nothing before it is planned
  int max_attempts =
      3;  ///< so many ends over its load, while none succeeds, and it is given no more
  bool ending = false;  ///< nothing more is done for it
  /// Hosts that get nothing of it while another is there: they refused or failed what others may
  /// yet do (HostDoubts).
  std::set<std::string> doubted = {};
  bool operator==(const RunView&) const = default;
};

/// A trial that a worker holds: the run's own number of the trial, and the attempt.
struct HeldTrial {
  int64_t run = 0;
  int64_t trial = 0;
  int attempt = 0;
  auto operator<=>(const HeldTrial&) const = default;
};

}  // namespace evald
