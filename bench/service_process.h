#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald::bench {

/// `evald serve` on a free port of this machine, as long as this lives.
class ServiceProcess {
 public:
  /// Starts it and waits until it says that it serves. Throws Error(kInfrastructure).
  ServiceProcess(const std::filesystem::path& evald, const std::filesystem::path& config);
  /// Ends it (SIGTERM, then a kill).
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
