#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "metrics/sandbox/box_process.h"

namespace evald::sandbox {

/// The conversation with a contained Python program, line by line. The program sees the packages of
/// its interpreter and nothing else of the host's files, and has no network, processes of its own,
/// or a second user's rights (docs/task-code.md). One thread at a time.
class Box {
 public:
  /// What errors call the program, and what they advise if it has ended.
  struct Words {
    std::string who = "the process of the task's code";
    std::string remedy =
        "see the task's Python file; 'limits.memory' sets how much memory it may take";
  };
  explicit Box(std::unique_ptr<BoxProcess> process) : Box(std::move(process), Words()) {}
  Box(std::unique_ptr<BoxProcess> process, Words words);
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;

  /// Makes Send and Receive throw Error(kInfrastructure) soon after `stopped` has become true.
  void StopWhen(std::function<bool()> stopped) { stopped_ = std::move(stopped); }

  /// Sends a line, and waits until it is taken. Throws Error(kInput) if the program has ended: its
  /// code ended it. Throws it, too, at `deadline_us` (base/clock.h, MonotonicMicros; 0: never).
  void Send(std::string_view line, int64_t deadline_us);
  /// The same for bytes as they are.
  void SendBytes(std::string_view bytes, int64_t deadline_us);

  /// The next line. Throws like Send, and for a line of more than `bytes_max`.
  std::string Receive(size_t bytes_max, int64_t deadline_us);

  /// What the program has written to standard output and standard error since the last call: at
  /// most its last 64 KiB.
  std::string TakeSaid();

  Json Installed() const { return process_->Installed(); }

 private:
  void Await(short events, int64_t deadline_us);
  void ReadErrors();
  bool ReadControl();
  [[noreturn]] void ThrowEnded();

  std::unique_ptr<BoxProcess> process_;
  Words words_;
  std::function<bool()> stopped_;  ///< null: nothing stops it
  std::string received_;
  std::string said_;
};

}  // namespace evald::sandbox
