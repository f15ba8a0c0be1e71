#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evald/json.h"
#include "metrics/sandbox/contained.h"

namespace evald::sandbox {

/// A Python program that stays in the sandbox and is asked over its control socket.
struct BoxOptions {
  bool unsafe = false;  ///< without isolation, only with limits
  std::string python = "/usr/bin/python3";
  std::string script;                  ///< the program
  std::vector<std::string> arguments;  ///< its sys.argv[1:]
  uint64_t memory_bytes = uint64_t{4} << 30;
  uint64_t tmpfs_bytes = uint64_t{64} << 20;  ///< of /tmp, the one folder that it may write
};

/// A contained Python program. It runs with the packages of `python` and nothing else of the host's
/// files, without network, processes of its own, or a second user's rights (docs/task-code.md). It
/// ends with this object, with this process, and with the thread that made this object. One thread
/// at a time.
class Box {
 public:
  /// Throws Error(kInfrastructure) if the interpreter is unusable or the host cannot isolate it.
  explicit Box(const BoxOptions& options);
  ~Box();
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;

  /// Sends a line, and waits as long as the program takes.  Throws Error(kInput) if the program has
  /// ended: task code ended it.
  void Send(std::string_view line);

  /// The next line. Throws like Send, and for a line of more than `bytes_max`.
  std::string Receive(size_t bytes_max);

  /// What the program has written to standard output and standard error since the last call: at
  /// most its last 64 KiB.
  std::string TakeSaid();

  /// The version of Python: "3.11.2".
  const std::string& version() const { return version_; }

 private:
  void ReadErrors();
  bool ReadControl();
  [[noreturn]] void ThrowEnded();

  std::string version_;
  std::string scratch_;  ///< unsafe: the program's temporary folder
  std::optional<Contained> process_;
  std::string received_;
  std::string said_;
};

}  // namespace evald::sandbox
