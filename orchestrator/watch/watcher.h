#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "orchestrator/watch/watch_policy.h"

namespace evald {

struct WatchOptions {
  std::filesystem::path checkpoints;  ///< the folder that checkpoints appear in
  WatchWhich which = WatchWhich::kAll;
  int every = 1;
  std::string marker;   ///< a file that says that a checkpoint is complete; "" for none
  double settle_s = 5;  ///< without a marker: how long nothing of it may change
  double poll_s = 5;    ///< the folder is looked at so often, also where inotify sees nothing
  /// Where the watch remembers what it has decided, over restarts.
  std::filesystem::path memory;
};

/// Watches a folder and submits each new whole checkpoint once. Wakes by inotify where the file
/// system tells of changes, else by polling. Runs on a thread of its own.
class Watcher {
 public:
  struct Actions {
    /// Submits a run for a checkpoint and gives its id; equal `key`s mean the same submission. Throws
    /// Error: kInput and kUsage pass the checkpoint over, others are tried again later.
    std::function<std::string(const FoundCheckpoint& checkpoint, const std::string& key)> submit;
    std::function<bool(const std::string& run)> is_over;
    /// For people: "step-00100: submitted as run 1f2e".
    std::function<void(const std::string& line)> tell;
  };

  /// Reads the memory. Throws Error when the folder is missing.
  Watcher(WatchOptions options, Actions actions);
  /// Ends the thread.
  ~Watcher();

  void Start();
  /// Looks once, now. Not while started. Gives the ids of the runs submitted.
  std::vector<std::string> Look();
  /// Looks soon. Any thread.
  void Wake();
  const WatchOptions& options() const { return options_; }
  /// Everything found is decided and all submitted runs are over.
  bool settled();

 private:
  void Main();
  void Wait();
  void Remember(const FoundCheckpoint& checkpoint);
  void LoadMemory();
  void SaveMemory() const;

  WatchOptions options_;
  Actions actions_;
  CheckpointScan scan_;
  WatchMemory memory_;
  std::vector<std::string> waiting_;  // runs submitted and not known to be over
  bool undecided_ = false;
  int wake_fd_ = -1;     // eventfd
  int inotify_fd_ = -1;  // -1 where there is none
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace evald
