#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "orchestrator/fleet/checkpoint_sources.h"
#include "protocol/messages.h"

namespace evald {

/// A file that an agent may write, and its largest size.
struct UploadGrant {
  std::filesystem::path file;
  uint64_t bytes_max = 0;
};

/// One generations file from another host
constexpr uint64_t kGenerationsBytesMax = uint64_t{8} << 30;
constexpr uint64_t kScoresBytesMax = uint64_t{2} << 30;  ///< of one scores file

/// The files that an agent of another host may fetch and give: those of the work that it was given,
/// and no other. An agent is known by its instance, which nobody else can guess, together with the
/// name of the token that it connected with. The orchestrator's loop fills this as messages go out
/// and come in; the REST interface asks. Any thread.
class AgentFiles {
 public:
  /// The agent may have nothing yet. `owner` is the name of its token; "" if no tokens are in
  /// force.
  void Begin(const std::string& instance, const std::string& owner = "");
  void End(const std::string& instance);
  /// A message goes to one of the agent's processes: the files that it names may be fetched and
  /// written. A metric job's file is then no other agent's, which may have had the job before.
  /// An `instance` that never began, such as the agent of the service's own host, gets nothing.
  void Sent(const std::string& instance, const std::string& process,
            const protocol::Message& message);
  /// A message came from one of its processes: files of work that has ended may no longer be
  /// written.
  void Received(const std::string& instance, const protocol::Message& message);

  /// Whether the agent connected with the token `owner`.
  bool IsOf(const std::string& instance, const std::string& owner) const;

  // Each of these gives a path that may be read or written, or nothing.
  std::optional<std::filesystem::path> Prepared(const std::string& instance,
                                                const std::string& key) const;
  std::optional<std::filesystem::path> Checkpoint(const std::string& instance,
                                                  const std::string& fingerprint) const;
  /// A generations file by its hash.
  std::optional<std::filesystem::path> Generations(const std::string& instance,
                                                   const std::string& hash) const;
  /// A file that the agent was told to write, by the name that the message gave.
  std::optional<UploadGrant> Upload(const std::string& instance, const std::string& file) const;
  /// Calls `give`, which gives a complete file its name, if the agent may still write the file.
  /// False if not: the file may be reported, and checked, and changes no more.
  bool Name(const std::string& instance, const std::string& file,
            const std::function<void()>& give) const;
  /// Waits until no call of Name gives this file its name. Called after Received has taken the
  /// report of the file; from then on the file stays as it is. Not on the loop: renaming takes as
  /// long as the disk.
  void AwaitNamed(const std::filesystem::path& file) const;

  /// From whom agents fetch checkpoints. Knows the agents that have begun and not ended.
  CheckpointSources& sources() const { return sources_; }

 private:
  struct Grants {
    std::string owner;
    std::map<std::string, std::string> prepared;     // key: folder
    std::map<std::string, protocol::Load> loads;     // by process
    std::map<std::string, std::string> generations;  // hash: file
    std::map<std::pair<int64_t, int>, std::set<std::string>> slices;
    std::map<int64_t, std::string> scores;  // by job
  };
  std::optional<UploadGrant> Granted(const std::string& instance, const std::string& file) const;
  void TakeFromOthers(const std::string& instance, int64_t job);
  static void Fill(Grants* grants, const std::string& process, const protocol::Message& message);

  mutable std::mutex mutex_;
  mutable std::condition_variable named_;
  mutable std::multiset<std::string> naming_;  // files that are given their names now
  std::map<std::string, Grants> agents_;
  mutable CheckpointSources sources_;
};

}  // namespace evald
