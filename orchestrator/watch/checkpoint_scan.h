#pragma once

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

/// Looks for whole checkpoints among the subfolders of a folder. A checkpoint is whole when all that
/// evald stages is there: each shard that the index names, as long as its header says. It has come to
/// rest when `marker` lies in it, or, without one, when nothing of it changed for `settle_s`. Half of
/// one, then, is never found, only later. One thread at a time.
class CheckpointScan {
 public:
  /// The folder and its checkpoints lie below `roots`.
  CheckpointScan(std::filesystem::path folder, std::string marker, double settle_s, ReadRoots roots = {});

  /// What is there now, by training step (the last number in the name), then by name. `now_s` is any
  /// clock that only goes forward. Throws Error(kInput) when the folder cannot be read.
  std::vector<FoundCheckpoint> Scan(double now_s);
  /// There are folders that may become checkpoints: look again soon.
  bool unsettled() const { return unsettled_; }

 private:
  struct Seen {
    std::string identity;
    double since_s = 0;
    bool whole = false;  ///< checked for this identity
  };
  std::filesystem::path folder_;
  std::string marker_;
  double settle_s_;
  ReadRoots roots_;
  std::map<std::string, Seen> seen_;
  bool unsettled_ = false;
};

/// The training step in a checkpoint's name: its last run of digits; -1 for none.
int64_t StepOf(const std::string& name);

}  // namespace evald
