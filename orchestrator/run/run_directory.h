#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "evald/json.h"
#include "orchestrator/config/eval_config.h"

namespace evald {

/// The folder of one run (docs/formats.md) and the lock that makes this process its only owner.
class RunDirectory {
 public:
  /// Makes a new run's folder. Throws Error(kUsage) if it cannot be written or its name is taken.
  static RunDirectory Create(const EvalConfig& config);
  /// Opens an interrupted run. `run` is a folder, or its name under the output folder; if empty,
  /// the newest unfinished run of this configuration. Throws Error(kUsage) if there is none, if it
  /// is finished, if another process is at it, or if its configuration differs in a key that
  /// decides scores.
  static RunDirectory Resume(const EvalConfig& config, const std::string& run);

  /// run.json of a folder; nothing if there is none. Throws Error(kInput) if it is damaged, and
  /// Error(kInfrastructure) if it cannot be read.
  static std::optional<Json> ReadRecord(const std::filesystem::path& directory);

  /// The evald that holds the lock of a run's folder, in words; "" if there is none.
  static std::string AtWorkIn(const std::filesystem::path& directory);

  /// Adds or replaces `members` in the run.json of a run that has ended and that no one resumes
  /// meanwhile. Throws Error like ReadRecord, and Error(kInfrastructure).
  static void Amend(const std::filesystem::path& directory, const Json& members);

  /// Removes the folder of the run `id`, which has ended. run.json goes last, so that a removal
  /// that is cut short can be repeated. Does nothing if the folder is gone or holds another run.
  /// False, and nothing is removed, if a process is at work on the run. Throws Error like
  /// ReadRecord, and filesystem_error.
  static bool Remove(const std::filesystem::path& directory, const std::string& id);

  const std::filesystem::path& path() const { return path_; }
  /// The run's name in the database: unique, kept in run.json.
  const std::string& id() const { return id_; }
  const Json& record() const { return record_; }

  /// Adds or replaces `members` of the record, in memory only.
  void Change(const Json& members) { record_.update(members); }
  /// The record in the form of run.json.
  std::string Text() const;
  /// Rewrites run.json with `members` added or replaced. Waits for the disk: on the loop, use
  /// RunJson.
  void Update(const Json& members);

 private:
  RunDirectory() = default;
  bool TakeRemains();
  void Lock();

  std::filesystem::path path_;
  std::string id_;
  Json record_;
  UniqueFd lock_;
};

/// Makes the folders for the generations and scores of these tasks below the run's folder `run`, so
/// that they survive power loss. Throws Error like MakeDirectories.
void MakeTaskFolders(const std::filesystem::path& run, const std::vector<std::string>& tasks);

}  // namespace evald
