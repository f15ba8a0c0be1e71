#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace evald {

/// Says whether whoever waits for a process no longer wants its answer. The thread that waits asks
/// ten times a second.
using Cancelled = std::function<bool()>;

/// A program that is started to work off one input.
struct ChildOrder {
  std::filesystem::path program;  ///< called with this process's id and the level of the log
  std::string input;              ///< its standard input
  double seconds = 0;             ///< that it may take
  Cancelled cancelled;            ///< ends it; none: nobody cancels it
  double grace_seconds = 2;  ///< from asking it to end until it is killed; 0: it is killed at once
};

/// How it ended.
struct ChildEnd {
  enum class Why { kEnded, kTimeout, kCancelled, kTooMuchSaid };
  Why why = Why::kEnded;  ///< of itself, or what it was ended for
  int status = 0;         ///< kEnded: its exit status,
  int signal = 0;         ///< or the signal that ended it
};

/// Runs it to its end and gives each line of its standard output to `on_line`, in this thread. A
/// line has at most 32 MiB, all together 256 MiB. What `on_line` throws ends the program, and is
/// thrown. The program leads a process group of its own, gets no descriptors but its input, its
/// output and this process's standard error, and of the environment only what is not a secret. To
/// end it, it is asked (SIGTERM), then, after `grace_seconds`, killed with all of its group. Throws
/// Error(kInfrastructure) when it cannot be started.
ChildEnd RunChild(const ChildOrder& order,
                  const std::function<void(std::string_view line)>& on_line);

}  // namespace evald
