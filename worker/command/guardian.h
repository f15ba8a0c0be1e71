#pragma once

#include <cstdint>

namespace evald::command {

/// How a program ended. The guardian sends it to the worker as it is.
struct ProgramEnd {
  enum class Why : int32_t {
    kExited,      ///< `value`: its exit status
    kSignalled,   ///< `value`: the signal that ended it
    kNotStarted,  ///< `value`: errno of chdir or exec
    kTimeLimit,   ///< it was ended
    kLost,        ///< the guardian was killed
  };
  Why why = Why::kLost;
  int32_t value = 0;
};

/// What a guardian needs. Everything was made before the fork: a guardian makes system calls only,
/// since the process that forked has other threads.
struct GuardianOrder {
  const char* program = nullptr;  ///< its path
  char* const* words = nullptr;
  char* const* environment = nullptr;
  const char* folder = nullptr;  ///< it begins there
  int life = -1;                 ///< the read end of a pipe: when it closes, the program is ended
  int report = -1;               ///< a ProgramEnd is written there
  int output = -1;               ///< the program's standard output and error
  int64_t time_limit_ms = 0;
  int grace_ms = 0;  ///< from SIGTERM to SIGKILL
};

/// The rest of a process that was forked for this: starts the program in a session of its own, and
/// watches it. When the program has ended, when its time is over, or when the worker is gone,
/// however it went, the guardian kills everything that the program started and left: processes that
/// lost their parent become the guardian's children (PR_SET_CHILD_SUBREAPER), in whatever session
/// they are.
[[noreturn]] void RunGuardian(const GuardianOrder& order);

}  // namespace evald::command
