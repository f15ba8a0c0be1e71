#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/read_roots.h"

namespace evald {

/// A complete checkpoint at rest in a watched folder.
struct FoundCheckpoint {
  std::filesystem::path path;
  std::string name;      ///< of its folder
  std::string identity;  ///< hash of its files' names, sizes and times
};

/// Finds complete checkpoints among the subfolders of a folder. A checkpoint is complete if all
/// files that evald stages are there: each shard that the index names, as long as its header says.
/// It is at rest if it holds `marker` or, without a marker, if none of its files changed for
/// `settle_s`. So an unfinished checkpoint is never found early.
///
/// A checkpoint is opened and parsed (its index and its shards' headers) once it is at rest. It is
/// parsed again only if one of its files has changed, by device, inode, size and times. A refused
/// checkpoint is tried again after ten minutes, since a file system may have failed for a moment.
/// The log says once why a folder with a config.json is refused. One thread at a time.
class CheckpointScan {
 public:
  /// The folder and its checkpoints must lie below `roots`.
  CheckpointScan(std::filesystem::path folder, std::string marker, double settle_s,
                 ReadRoots roots = {});

  /// The checkpoints there now, by training step (the last number in the name), then by name.
  /// `now_s` is any monotonic clock. Once `ending` is set, checkpoints not yet looked at are left
  /// out. Throws Error(kInput) if the folder cannot be read.
  std::vector<FoundCheckpoint> Scan(double now_s, const std::atomic<bool>* ending = nullptr);
  /// Whether there are folders that may become checkpoints.
  bool unsettled() const { return unsettled_; }
  /// Whether one of them has changed lately and may soon be at rest.
  bool settling() const { return settling_; }

 private:
  struct Seen {
    /// Stamp that must not change for it to be at rest; "" before the first look
    std::string quiet;
    double since_s = 0;              ///< when `quiet` last changed
    std::vector<std::string> named;  ///< files that its index names
    std::string exact;               ///< stamp of its files when they were checked; "" before that
    double checked_s = 0;
    std::string identity;  ///< the check's result; "" if it was refused
    std::string refusal;   ///< the reason, which is logged once
  };
  bool IsWhole(const ReadFolder& checkpoint, double now_s, Seen* seen);
  bool AtRest(const std::string& quiet, double now_s, Seen* seen);
  static void Check(const ReadFolder& checkpoint, Seen* seen);
  std::filesystem::path folder_;
  std::string marker_;
  double settle_s_;
  ReadRoots roots_;
  std::map<std::string, Seen> seen_;
  bool unsettled_ = false;
  bool settling_ = false;
};

/// The training step in a checkpoint's name: its last run of digits; -1 if it has none.
int64_t StepOf(const std::string& name);

}  // namespace evald
