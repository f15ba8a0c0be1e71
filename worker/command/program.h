#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "worker/command/guardian.h"
#include "worker/command/output_log.h"

namespace evald::command {

struct ProgramOrder {
  std::vector<std::string> words;  ///< the first is a path, or a name that is looked for on PATH
  std::map<std::string, std::string> environment;  ///< added to this process's own
  std::filesystem::path folder;                    ///< where it begins
  std::filesystem::path log;                       ///< its output is appended there
  uint64_t log_bytes_max = uint64_t{16} << 20;
  std::chrono::milliseconds time_limit{3600'000};
  std::chrono::milliseconds grace{5000};  ///< from SIGTERM to SIGKILL
};

/// A running program of the user's, with this user's rights, watched by a guardian (guardian.h). It
/// has no standard input. One thread at a time.
class Program {
 public:
  /// Starts it. A program that cannot be started has ended at once (kNotStarted). Throws
  /// Error(kInfrastructure) if there is no process or no log.
  explicit Program(const ProgramOrder& order);
  /// Ends it, if it still runs, and everything that it started.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits at most `time` for its end. Nothing that it started runs after its end.
  std::optional<ProgramEnd> Wait(std::chrono::milliseconds time);
  /// The last of its output, in UTF-8.
  std::string LogTail() const { return log_ ? log_->Tail() : ""; }

 private:
  void Start(const ProgramOrder& order, const std::string& path);
  void Bury();

  pid_t guardian_ = -1;
  UniqueFd life_;  ///< closing it ends the program
  UniqueFd report_;
  std::optional<OutputLog> log_;
  std::optional<ProgramEnd> end_;
};

}  // namespace evald::command
