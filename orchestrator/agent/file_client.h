#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "orchestrator/agent/dialer.h"

namespace evald {

/// Fetches and gives files over the orchestrator's REST interface (libcurl); blocks. What the
/// orchestrator refuses comes as Error(kUsage), what is worth another try as
/// Error(kInfrastructure). One thread at a time.
class FileClient {
 public:
  /// While `*cancel` is set every call fails soon. It outlives this.
  FileClient(const OrchestratorAddress& address, const std::atomic<bool>* cancel);
  ~FileClient();

  std::string Get(const std::string& path);
  /// Writes bytes [first, first + count) of the file at `path` to the same place in `fd`.
  void GetRange(const std::string& path, uint64_t first, uint64_t count, int fd);
  void Put(const std::string& path, std::string_view body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald
