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

  /// run.json of a folder; nothing where there is none. Throws Error(kInput) when it is damaged.
  static std::optional<Json> ReadRecord(const std::filesystem::path& directory);

  const std::filesystem::path& path() const { return path_; }
  /// Names the run in the database: unique, kept in run.json.
  const std::string& id() const { return id_; }
  const Json& record() const { return record_; }

  /// Rewrites run.json with `members` added or replaced.
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

}  // namespace evald
