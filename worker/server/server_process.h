#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace evald::server {

/// An external server that this process started. The server runs in a process group of its own,
/// watched by a small guardian process in a session of its own. However this process ends, the
/// guardian sees their pipe close and kills the whole group. The server's output goes to this
/// process's standard error; the last of it is kept for error messages.
class ServerProcess {
 public:
  /// Starts `command` (found on PATH) with `environment` added to this process's own. Throws
  /// Error(kInfrastructure) if no process can be started. If the command cannot be executed, the
  /// process ends with status 127.
  ServerProcess(const std::vector<std::string>& command,
                const std::map<std::string, std::string>& environment);
  /// Sends SIGTERM to the group, and SIGKILL after 5 s.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Once it says false, LogTail() has the server's last words.
  bool running();
  /// "exit status 1", "signal 9": how the server ended, once it no longer runs.
  std::string ending() const { return ending_; }
  /// The last 64 KiB of the server's output.
  std::string LogTail() const;

 private:
  void ReadLog();

  std::string name_;
  pid_t guardian_ = -1;
  UniqueFd life_;  ///< closing it ends the server
  UniqueFd log_;
  std::string ending_;
  mutable std::mutex mutex_;
  std::string tail_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> log_read_{false};  ///< all that the server printed is in tail_
  std::thread reader_;
};

/// A TCP port of 127.0.0.1 on which nobody listens at this moment.
int FreePort();

}  // namespace evald::server
