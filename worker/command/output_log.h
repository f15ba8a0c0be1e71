#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "base/file.h"

namespace evald::command {

/// Writes the output of a program into a log file, on a thread of its own, so that the program
/// never waits. The log takes the first bytes up to a limit, and the last 64 KiB; those between are
/// left out, and the log says so.
class OutputLog {
 public:
  /// Reads `pipe` to its end. The log is appended to. Throws Error(kInfrastructure) if it cannot be
  /// opened; a later failure to write is passed over.
  OutputLog(UniqueFd pipe, const std::filesystem::path& log, uint64_t bytes_max);
  /// Ends the reading, even if some process still holds the pipe.
  ~OutputLog();
  OutputLog(const OutputLog&) = delete;
  OutputLog& operator=(const OutputLog&) = delete;

  /// Reads what is left, then ends. No process writes to the pipe any more, as far as is known.
  void Finish();
  /// The last output, in UTF-8.
  std::string Tail() const;

 private:
  void Read();
  void Take(const char* bytes, size_t count);
  void WriteTail();

  UniqueFd pipe_;
  UniqueFd log_;
  uint64_t left_;  ///< bytes that the log still takes
  uint64_t left_out_ = 0;
  mutable std::mutex mutex_;
  std::string tail_;  ///< under mutex_
  std::atomic<bool> stopping_{false};
  std::thread reader_;  ///< last: it uses the others
};

}  // namespace evald::command
