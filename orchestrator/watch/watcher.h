#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/read_roots.h"
#include "orchestrator/watch/scan_turns.h"
#include "orchestrator/watch/watch_policy.h"

namespace evald {

struct WatchOptions {
  std::filesystem::path checkpoints;  ///< the folder in which checkpoints appear
  WatchWhich which = WatchWhich::kAll;
  int every = 1;
  std::string marker;   ///< a file that marks a complete checkpoint; "" for none
  double settle_s = 5;  ///< without a marker: seconds without a change of any file
  double poll_s = 5;    ///< interval of looks at the folder, even if inotify sees nothing
  /// The file in which the watch keeps its decisions, over restarts.
  std::filesystem::path memory;
  /// The eval.yaml in a word. It is part of a submission's key, so that two watches of one folder
  /// do not take each other's runs for their own.
  std::string scope;
  bool may_be_missing = false;  ///< the folder may appear later
  ReadRoots roots;              ///< the folder and its checkpoints lie below them
  /// Outlives the watcher; nullptr: the watcher looks whenever it wants
  ScanTurns* turns = nullptr;
  std::string user;  ///< the user whose turn a look takes
};

/// A watch's decision about a checkpoint.
struct WatchNote {
  std::string checkpoint;  ///< name of its folder
  std::string decision;    ///< submitted, passed-over, refused, or postponed (to be tried again)
  std::string run;         ///< of a submitted checkpoint
  std::string detail;      ///< the reason, if refused or postponed
};

/// Watches a folder and submits each new complete checkpoint once. inotify wakes it if the file
/// system reports changes, otherwise polling. It looks at most ten times a second. Runs on a thread
/// of its own.
class Watcher {
 public:
  struct Actions {
    /// Submits a run for a checkpoint and returns its id. Equal `key`s mean the same submission.
    /// Throws Error: after kInput and kUsage the checkpoint is passed over, after others it is
    /// tried again later.
    std::function<std::string(const FoundCheckpoint& checkpoint, const std::string& key)> submit;
    std::function<bool(const std::string& run)> is_over;
    /// Called after each decision.
    std::function<void(const WatchNote& note)> tell;
    /// Called with the reason why the folder cannot be looked at, and with "" when it can again.
    std::function<void(const std::string& why)> trouble;
  };

  /// Reads the memory; a damaged one is ignored. Throws Error(kUsage) if the folder is missing and
  /// may not be.
  Watcher(WatchOptions options, Actions actions);
  /// Calls Stop().
  ~Watcher();

  void Start();
  /// Tells the thread to end, and does not wait. Any thread.
  void End();
  /// Whether no thread is at work. Not to be called during Start().
  bool ended() const { return !thread_.joinable() || ended_; }
  /// Ends the thread. Waits for a look under way.
  void Stop();
  /// Removes the memory's file and writes none from now on. Any thread.
  void Forget();
  /// Looks once, now, and returns the ids of the submitted runs. Not while the thread runs.
  std::vector<std::string> Look();
  /// Has the thread look soon. Any thread.
  void Wake();
  const WatchOptions& options() const { return options_; }
  /// Whether all checkpoints found are decided and all submitted runs are over.
  bool settled();

 private:
  void Main();
  void Wait();
  void Submit(const FoundCheckpoint& checkpoint, std::vector<std::string>* runs);
  void Remember(const FoundCheckpoint& checkpoint);
  void ForgetRunsThatAreOver();
  void Trouble(const std::string& why);
  void LoadMemory();
  void SaveMemory();

  WatchOptions options_;
  Actions actions_;
  CheckpointScan scan_;
  WatchMemory memory_;
  std::string trouble_;
  bool undecided_ = false;
  int wake_fd_ = -1;     // eventfd
  int inotify_fd_ = -1;  // -1 if there is none
  std::atomic<bool> ending_{false};
  std::atomic<bool> ended_{false};
  std::mutex file_mutex_;  // guards the memory's file
  bool forgotten_ = false;
  std::thread thread_;
};

}  // namespace evald
