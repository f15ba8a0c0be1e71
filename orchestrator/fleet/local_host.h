#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/fleet/host.h"
#include "orchestrator/fleet/loop.h"

namespace evald {

struct LocalHostOptions {
  std::filesystem::path directory;  ///< for the socket; exists and is private
  std::filesystem::path binaries;   ///< folder of evald-worker and evald-metric
  std::filesystem::path log_dir;    ///< for the processes' output, which is appended; exists
  /// Arguments of every metric process, in addition to its ProcessSpec's
  std::vector<std::string> metric_arguments;
};

/// This process's children. Starts them, watches them (pidfd), and talks to them over a Unix socket
/// in a private folder. Each child has its own process group and gets SIGKILL when this process
/// dies.
class LocalHost : public Host {
 public:
  /// Listens at `directory`/agent.sock.
  LocalHost(Loop* loop, LocalHostOptions options, Events events);
  /// Kills the children that still run.
  ~LocalHost() override;

  void Start(const ProcessSpec& spec) override;
  void Send(const std::string& id, const protocol::Message& message) override;
  void Kill(const std::string& id) override;
  void StopAll(std::chrono::milliseconds grace, std::function<void()> done) override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace evald
