#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace evald {

/// Facts that decide whether answers of two engines may stand in one run.
struct EngineFacts {
  std::string name, version;
  std::string device;    ///< the kind of device that the engine computes on
  bool own_gpu = false;  ///< that device is a GPU of the fleet (EngineInfo::device_id is not empty)
  bool operator==(const EngineFacts&) const = default;
};

/// RunView::load begins with this if the checkpoint is not staged but read in place: it takes no
/// memory.
inline constexpr const char* kUnstagedLoad = "unstaged:";

/// A run as the fleet sees it. The executor fills it in and passes it on whenever it changes. The
/// fleet machine never calls a run.
struct RunView {
  int64_t number = 0;  ///< older runs have smaller ones
  int priority = 0;    ///< higher goes first
  std::string user;
  /// The command line of its workers; runs with one profile share workers
  std::string profile;
  /// Its engine computes on the fleet's devices, so their kind matters
  bool uses_devices = false;
  /// The engine of the first worker that loaded the checkpoint; nothing before
  std::optional<EngineFacts> engine;
  /// Fingerprint of the Load that its workers need; "" for none
  std::string load;
  std::string fingerprint;              ///< of its staged checkpoint; "" if nothing is staged (yet)
  double checkpoint_bytes = 0;          ///< of the staged checkpoint
  std::optional<int64_t> followable;    ///< its staging can be followed; the number of that staging
  bool planned = false;                 ///< its trials can be leased
  bool wants_workers = false;           ///< a worker that has the checkpoint would be of use
  bool wants_more_workers = false;      ///< so would a worker that has to load it first
  bool wants_metric_processes = false;  ///< a metric job is waiting
  /// Work is left that only a worker can do, whether a worker is at it or not
  bool needs_workers = false;
  /// Device seconds of open work; nothing before it is planned
  std::optional<double> open_s;
  /// Expected seconds of the shortest trial that could be leased now; nothing if none could
  std::optional<double> shortest_s = {};
  /// Ends over its load, without one success, after which those workers do not get it again
  int max_attempts = 3;
  bool ending = false;  ///< no more work is done for it
  /// Hosts that get nothing of the run while another host is there: they refused or failed work
  /// that others may still do (HostDoubts).
  std::set<std::string> doubted = {};
  /// Tokens all of whose hosts are such (HostSpec::owner).
  std::set<std::string> doubted_owners = {};
  bool operator==(const RunView&) const = default;
};

/// A trial that a worker holds: its number within the run, and the attempt.
struct HeldTrial {
  int64_t run = 0;
  int64_t trial = 0;
  int attempt = 0;
  auto operator<=>(const HeldTrial&) const = default;
};

}  // namespace evald
