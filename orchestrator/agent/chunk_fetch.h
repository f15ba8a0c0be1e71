#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "orchestrator/agent/chunk_shelf.h"
#include "orchestrator/agent/file_client.h"
#include "orchestrator/fleet/source_choice.h"
#include "orchestrator/staging/fingerprint.h"

namespace evald {

struct ChunkFetchOptions {
  OrchestratorAddress service;
  std::string instance;               ///< of this agent
  std::filesystem::path authorities;  ///< a folder for the certificates of other agents
  std::string fingerprint;
  const std::atomic<bool>* cancel = nullptr;
};

/// Brings the files of a checkpoint into a folder, chunk by chunk over a few connections, from one
/// source at a time: the service, or an agent that the service names. While chunks come, the
/// service is told how many there are, and may name another source. A source that fails is left,
/// and the chunks that are still missing come from the next. Each chunk is checked before it
/// counts, so no wrong byte is passed on to others.
class ChunkFetch {
 public:
  /// `files` are made in `folder` at their lengths. A file without hashes of its chunks (from a
  /// service that has none) is not checked, and all files then come from the service.
  ChunkFetch(ChunkFetchOptions options, std::filesystem::path folder,
             const std::vector<HashedFile>& files);
  ~ChunkFetch();

  /// Blocks until all chunks are there. Chunks that land are told to `filling`, if there is one.
  /// Throws Error: kUsage if the service refuses, kInfrastructure if another try may succeed.
  void Run(ChunkShelf::Filling* filling);

  /// Whether each chunk is checked as it comes.
  bool checks() const { return checked_; }
  /// Bytes by source: "service", or an agent's URL.
  std::map<std::string, uint64_t> bytes_from() const;

 private:
  struct Source {
    std::string url;  // kServiceSource, an agent's, or "": none yet
    OrchestratorAddress address;
    std::string path;  // of the checkpoint there
    bool is_service() const { return url == kServiceSource; }
  };
  struct Chunk {
    size_t file;
    uint64_t number;
  };

  Source ServiceSource() const;
  Source Ask(const std::string& current, const std::atomic<bool>* cancel);
  Source AskPatiently();
  Source NextSource();
  void FetchFrom(const Source& source);
  void WatchOver(const Source& source);
  bool ShouldMove(const Source& source);
  void Work(const Source& source);
  bool Bring(const Source& source, const Chunk& chunk, FileClient* client, std::string* bytes);
  void Put(const Source& source, const Chunk& chunk, const std::string& bytes);
  void Fail(const Source& source, SourceFault fault, const std::string& why);
  bool Stalled() const;
  int64_t Have() const;

  const ChunkFetchOptions options_;
  const std::filesystem::path folder_;
  const std::vector<HashedFile>& files_;
  std::vector<UniqueFd> fds_;
  std::vector<Chunk> chunks_;  // in the order in which they are fetched
  const bool checked_;
  ChunkShelf::Filling* filling_ = nullptr;

  Source next_;                    // where the service sent this fetch while it had a source
  std::atomic<bool> stop_{false};  // the threads leave the source
  std::atomic<int64_t> landed_us_{0};
  mutable std::mutex mutex_;  // guards what follows
  std::set<size_t> missing_;  // indices of chunks_ that are neither here nor on their way
  size_t landed_ = 0;
  int running_ = 0;
  std::string failed_;  // the agent that failed, until the service has been told
  SourceFault fault_ = SourceFault::kNone;
  std::exception_ptr failure_;  // ends the fetch
  std::map<std::string, uint64_t> bytes_from_;
};

}  // namespace evald
