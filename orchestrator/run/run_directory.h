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
  /// Makes a new run's folder. Throws Error(kUsage) when it cannot be written or its name is taken.
  static RunDirectory Create(const EvalConfig& config);
  /// Opens an interrupted run: `run` names it (a folder, or its name under the output folder), or
  /// the newest unfinished run of this configuration when empty. Throws Error(kUsage) when there is
  /// none, when it is finished, when another process is at it, or when its configuration differs in
  /// something that decides scores.
  static RunDirectory Resume(const EvalConfig& config, const std::string& run);

  /// run.json of a folder; nothing where there is none. Throws Error(kInput) when it is damaged,
  /// Error(kInfrastructure) when it cannot be read.
  static std::optional<Json> ReadRecord(const std::filesystem::path& directory);

  /// Adds or replaces `members` in the run.json of a run that has ended and that nobody resumes
  /// meanwhile. Throws Error as ReadRecord does, Error(kInfrastructure).
  static void Amend(const std::filesystem::path& directory, const Json& members);

  const std::filesystem::path& path() const { return path_; }
  /// Names the run in the database: unique, kept in run.json.
  const std::string& id() const { return id_; }
  const Json& record() const { return record_; }

  /// Adds or replaces `members` of the record, in memory only.
  void Change(const Json& members) { record_.update(members); }
  /// The record as run.json has it.
  std::string Text() const;
  /// Rewrites run.json with `members` added or replaced. Waits for the disk: on the loop, RunJson
  /// does this.
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

/// Makes the folders in which the generations and scores of these tasks lie, below the run's folder
/// `run`, so that they survive power loss. Throws Error as MakeDirectories does.
void MakeTaskFolders(const std::filesystem::path& run, const std::vector<std::string>& tasks);

}  // namespace evald
