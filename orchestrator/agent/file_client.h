#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "http_client/client.h"
#include "orchestrator/agent/dialer.h"

namespace evald {

/// Fetches and gives files over the orchestrator's REST interface; blocks. Throws Error(kUsage) if
/// the orchestrator refuses, and Error(kInfrastructure) if another try may succeed. One thread at a
/// time.
class FileClient {
 public:
  /// Every call fails soon while `*cancel` is set. `cancel` outlives this.
  FileClient(const OrchestratorAddress& address, const std::atomic<bool>* cancel)
      : address_(address), cancel_(cancel) {}

  /// A document of at most 64 MiB.
  std::string Get(const std::string& path);
  /// Writes the whole file at `path` to the beginning of `fd`.
  void GetFile(const std::string& path, int fd);
  /// Writes bytes [first, first + count) of the file at `path` to the same place in `fd`. Asks a
  /// few times.
  void GetRange(const std::string& path, uint64_t first, uint64_t count, int fd);
  /// Bytes [first, first + count) of the file at `path`. Asks a few times: a checkpoint has
  /// thousands of ranges, and one that fails costs all of them.
  std::string GetBytes(const std::string& path, uint64_t first, uint64_t count);
  void Put(const std::string& path, std::string_view body);
  /// Puts a document and returns the answer's, of at most 64 MiB. Asks a few times.
  std::string PutAndGet(const std::string& path, std::string_view body);

  /// The answer of another agent, which is asked once and soon given up.
  struct PeerAnswer {
    int status = 0;  ///< 206: `bytes` are there; 0: see `outcome`
    http_client::Outcome outcome = http_client::Outcome::kAnswered;
    std::string bytes;
    std::string why;  ///< for people, unless 206
  };
  PeerAnswer AskPeer(const std::string& path, uint64_t first, uint64_t count);

 private:
  struct Part;
  http_client::Request Ask(const std::string& method, const std::string& path) const;
  http_client::Response Fetch(http_client::Request request, Part* part);

  const OrchestratorAddress address_;
  const std::atomic<bool>* cancel_;
  http_client::Client client_;
};

}  // namespace evald
