#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "evald/error.h"
#include "metrics/sandbox/contain.h"

namespace evald::sandbox {

/// A contained interpreter and the connection to it. One thread at a time.
class Contained {
 public:
  /// Starts the interpreter of `plan`, whose control, null, errors and report descriptors are made
  /// here, and waits until it runs. Throws Error(kInfrastructure) that names the failed step and
  /// the remedy.
  explicit Contained(ContainPlan plan);
  /// Ends the process. As the first process of its pid namespace it ends everything in it.
  ~Contained();
  Contained(const Contained&) = delete;
  Contained& operator=(const Contained&) = delete;

  pid_t pid() const { return pid_; }
  int control() const { return control_.get(); }  ///< a stream socket
  int errors() const { return errors_.get(); }    ///< the process's standard error

  /// Closes the control socket, waits for the process's end for at most `grace_ms`, and kills the
  /// process if it is still there. Returns the wait status; -1 if it is unknown.
  int Stop(int grace_ms);

  /// Throws Error(kInfrastructure): the interpreter ended or hung. Adds the last line of its
  /// standard error.
  [[noreturn]] void ThrowDead(const std::string& doing);

 private:
  void AwaitExec(int report);

  pid_t pid_ = -1;
  UniqueFd control_;
  UniqueFd errors_;
};

/// Waits until `fd` can be read. False at the deadline (base/clock.h, MonotonicMicros).
bool AwaitReadable(int fd, int64_t deadline_us);

/// Reads up to `bytes`. Returns fewer at the end of the stream or at the deadline.
size_t ReadWithin(int fd, void* data, size_t bytes, int64_t deadline_us);

/// Sends to a socket. False if the other end is gone, or takes nothing until the deadline.
bool SendWithin(int fd, const void* data, size_t bytes, int64_t deadline_us);

/// An Error(kInfrastructure).
Error Infrastructure(const std::string& message, const std::string& remedy = "");

/// The remedy for a failed step of setting up a sandbox.
std::string SetupRemedy(int error_number);

/// The time that an interpreter may take to start.
inline constexpr int64_t kStartTimeoutUs = 60'000'000;

}  // namespace evald::sandbox
