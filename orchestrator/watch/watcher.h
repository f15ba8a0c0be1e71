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
  std::filesystem::path checkpoints;  ///< the folder that checkpoints appear in
  WatchWhich which = WatchWhich::kAll;
  int every = 1;
  std::string marker;   ///< a file that says that a checkpoint is complete; "" for none
  double settle_s = 5;  ///< without a marker: how long nothing of it may change
  double poll_s = 5;    ///< the folder is looked at so often, also where inotify sees nothing
  /// Where the watch remembers what it has decided, over restarts.
  std::filesystem::path memory;
  /// What it evaluates by, in a word: part of a submission's key, so that two watches of one folder
  /// do not take each other's runs for their own.
  std::string scope;
  bool may_be_missing = false;  ///< the folder may appear later
  ReadRoots roots;              ///< below which the folder and its checkpoints lie
  ScanTurns* turns = nullptr;   ///< outlives the watcher; nullptr: it looks whenever it wants to
  std::string user;             ///< whose turn a look takes
};

/// What a watch did about a checkpoint.
struct WatchNote {
  std::string checkpoint;  ///< name of its folder
  std::string decision;    ///< submitted, passed-over, refused, or postponed (is tried again)
  std::string run;         ///< of a submitted one
  std::string detail;      ///< why, for refused and postponed
};

/// Watches a folder and submits each new whole checkpoint once. Wakes by inotify where the file
/// system tells of changes, else by polling; looks ten times a second at most, whatever wakes it.
/// Runs on a thread of its own.
class Watcher {
 public:
  struct Actions {
    /// Submits a run for a checkpoint and gives its id; equal `key`s mean the same submission.
    /// Throws Error: kInput and kUsage pass the checkpoint over, others are tried again later.
    std::function<std::string(const FoundCheckpoint& checkpoint, const std::string& key)> submit;
    std::function<bool(const std::string& run)> is_over;
    /// After each decision.
    std::function<void(const WatchNote& note)> tell;
    /// Why the folder cannot be looked at; "" when it can again. Called when that changes.
    std::function<void(const std::string& why)> trouble;
  };

  /// Reads the memory; a damaged one counts as none. Throws Error(kUsage) when the folder is
  /// missing and may not be.
  Watcher(WatchOptions options, Actions actions);
  /// As Stop().
  ~Watcher();

  void Start();
  /// Has the thread end, and does not wait for that. Any thread.
  void End();
  /// Whether no thread is at work. Not while Start() is called.
  bool ended() const { return !thread_.joinable() || ended_; }
  /// Ends the thread; waits for a look under way.
  void Stop();
  /// Removes the memory's file, and writes none from now on. Any thread.
  void Forget();
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
  int inotify_fd_ = -1;  // -1 where there is none
  std::atomic<bool> ending_{false};
  std::atomic<bool> ended_{false};
  std::mutex file_mutex_;  // the memory's file
  bool forgotten_ = false;
  std::thread thread_;
};

}  // namespace evald
