#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace evald {

/// Whether the answer of a process is no longer wanted. The waiting thread asks ten times a second.
using Cancelled = std::function<bool()>;

/// A program to start, and its input.
struct ChildOrder {
  std::filesystem::path program;  ///< called with this process's id and the log level
  std::string input;              ///< its standard input
  double seconds = 0;             ///< the most time that it may take
  Cancelled cancelled;            ///< ends the program; none: it is never cancelled
  double grace_seconds = 2;       ///< from SIGTERM to SIGKILL; 0: it is killed at once
};

/// How the program ended.
struct ChildEnd {
  enum class Why { kEnded, kTimeout, kCancelled, kTooMuchSaid };
  Why why = Why::kEnded;  ///< the reason why it ended or was ended
  int status = 0;         ///< kEnded: its exit status,
  int signal = 0;         ///< otherwise the signal that ended it
};

/// Runs the program to its end, and calls `on_line` for each line of its standard output, on this
/// thread. A line has at most 32 MiB, all lines 256 MiB. An exception of `on_line` ends the program
/// and is passed on. The program leads its own process group. It gets no descriptors except its
/// input, its output and this process's standard error, and only those environment variables that
/// hold no secrets. To end it, SIGTERM is sent, and after `grace_seconds` SIGKILL to its whole
/// group. Throws Error(kInfrastructure) if it cannot be started.
ChildEnd RunChild(const ChildOrder& order,
                  const std::function<void(std::string_view line)>& on_line);

}  // namespace evald
