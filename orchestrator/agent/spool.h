#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/agent/file_client.h"
#include "protocol/messages.h"

namespace evald {

/// An agent's own files, if the orchestrator's are not visible here: prepared tasks by their
/// content key, and the files of runs by the run's id.
///
///     <folder>/prepared/<key>/            as the orchestrator's
///     <folder>/runs/<run id>/generations/<task>/<trial>.<attempt>.jsonl
///     <folder>/runs/<run id>/scores/<task>/...
///
/// Paths in the orchestrator's messages are translated to these, and back. Any thread. Functions
/// that fetch block and throw as FileClient does.
class Spool {
 public:
  Spool(std::filesystem::path folder, std::string instance);

  /// The lease with paths of this host. Prepared tasks are fetched. Half-written files of its task
  /// that are here are added to each slice's salvage.
  protocol::Lease Localize(const protocol::Lease& lease, FileClient* client);
  protocol::Job Localize(const protocol::Job& job, FileClient* client);
  /// Gives the whole file to the orchestrator under its hash and returns the orchestrator's path of
  /// it. Throws Error(kInternal) for a file that no message named.
  std::string Give(const std::string& local, const std::string& hash, FileClient* client);
  /// Removes files and folders that were not touched for `days`.
  void Tidy(int days) const;

 private:
  std::string Prepared(const std::string& folder, const std::string& tokenizer_key,
                       FileClient* client);
  static bool HoldsWhole(const std::filesystem::path& prepared, const std::string& tokenizer_key);
  std::filesystem::path Place(const std::string& run, const std::string& path);
  std::vector<std::string> Salvage(const std::filesystem::path& target) const;
  void Fetch(const std::string& url, const std::filesystem::path& target,
             std::optional<uint64_t> bytes, const std::string& hash, FileClient* client) const;

  const std::filesystem::path folder_;
  const std::string url_;  ///< of this agent's files
  std::mutex prepared_mutex_;
  std::mutex names_mutex_;
  std::map<std::string, std::string> names_;  ///< the orchestrator's path, by the path here
};

}  // namespace evald
