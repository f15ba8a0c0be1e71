#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/read_roots.h"

namespace evald {

/// A checkpoint under a watched folder that is whole and has come to rest.
struct FoundCheckpoint {
  std::filesystem::path path;
  std::string name;      ///< of its folder
  std::string identity;  ///< of its files: names, sizes, times
};

/// Looks for whole checkpoints among the subfolders of a folder. A checkpoint is whole when all
/// that evald stages is there: each shard that the index names, as long as its header says. It has
/// come to rest when `marker` lies in it, or, without one, when nothing of it changed for
/// `settle_s`. Half of one, then, is never found, only later.
///
/// A checkpoint is opened and parsed (its index, its shards' headers) once it is at rest, and again
/// only after a file of it has changed, by device, inode, size and times. One that was refused is
/// tried again after ten minutes, since a file system may have failed for a moment. One thread at a
/// time.
class CheckpointScan {
 public:
  /// The folder and its checkpoints lie below `roots`.
  CheckpointScan(std::filesystem::path folder, std::string marker, double settle_s,
                 ReadRoots roots = {});

  /// What is there now, by training step (the last number in the name), then by name. `now_s` is
  /// any clock that only goes forward. Once `ending` is set, it leaves out what it has not looked
  /// at. Throws Error(kInput) when the folder cannot be read.
  std::vector<FoundCheckpoint> Scan(double now_s, const std::atomic<bool>* ending = nullptr);
  /// There are folders that may become checkpoints.
  bool unsettled() const { return unsettled_; }
  /// One of them has changed lately and may be at rest before long.
  bool settling() const { return settling_; }

 private:
  struct Seen {
    std::string quiet;   ///< what must not change for it to be at rest; "" before the first look
    double since_s = 0;  ///< when that changed last
    std::vector<std::string> named;  ///< files that its index names
    std::string exact;               ///< its files when they were checked; "" before that
    double checked_s = 0;
    std::string identity;  ///< what came of the check: "" where it was refused
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

/// The training step in a checkpoint's name: its last run of digits; -1 for none.
int64_t StepOf(const std::string& name);

}  // namespace evald
