#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/sandbox/contained.h"
#include "metrics/sandbox/keeper/keeper_wire.h"
#include "metrics/sandbox/root.h"
#include "metrics/sandbox/sandbox.h"

namespace evald::sandbox {

/// What all sandboxes for programs of one runner have in common.
struct ProgramBoxPlan {
  bool unsafe = false;
  uint64_t tmpfs_bytes = 0;
  RootPlan root;
  std::vector<sock_filter> filters[2];  ///< without new processes, and with
};

/// What one step of a program gave.
struct StepResult {
  KeeperReport report = {};
  std::string output;
  std::string errors;  ///< the last ones
};

/// A sandbox for one program: its files, its compiler, its runs. It ends, with everything in it,
/// when this object is destroyed. One thread at a time.
class ProgramBox {
 public:
  /// Throws Error(kInfrastructure) that names the failed step and the remedy.
  explicit ProgramBox(const ProgramBoxPlan& plan);
  ~ProgramBox();
  ProgramBox(const ProgramBox&) = delete;
  ProgramBox& operator=(const ProgramBox&) = delete;

  /// Writes a file of the program, before the first step: then no link of the program's can lead
  /// elsewhere. Returns "", or why the file could not be written. Throws Error(kInfrastructure) if
  /// the sandbox has ended.
  std::string Write(const SourceFile& file);

  /// Runs a command to the end of all its processes. Throws Error(kInfrastructure) if the sandbox
  /// fails, and if the command could not be started for another reason than that it is missing.
  StepResult Run(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                 const StepLimits& limits, std::string_view input);

  /// The folder above the program's, in the sandbox.
  const std::string& folder() const { return folder_; }

 private:
  void Send(const void* data, size_t bytes);
  void Receive(void* data, size_t bytes, int64_t deadline_us);
  void SendConfig(const ProgramBoxPlan& plan, bool own_ids);

  std::string scratch_;  ///< unsafe: on the host's disk
  std::string folder_;
  std::unique_ptr<Contained> process_;
};

}  // namespace evald::sandbox
