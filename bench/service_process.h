#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald::bench {

/// `evald serve` on a free port of this machine. It runs as long as this object lives.
class ServiceProcess {
 public:
  /// Starts the service and waits until it reports that it serves. Throws Error(kInfrastructure)
  /// if the service does not start or ends before it serves.
  ServiceProcess(const std::filesystem::path& evald, const std::filesystem::path& config);
  /// Sends SIGTERM. Kills the service if it has not ended after 30 seconds.
  ~ServiceProcess();

  uint16_t port() const { return port_; }
  /// Resident memory of the service's own process.
  uint64_t resident_bytes() const;
  /// User and system time of the service's own process so far.
  double cpu_seconds() const;

 private:
  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

}  // namespace evald::bench
