#pragma once

#include <vector>

#include "base/command_line.h"
#include "bench/bench.h"

namespace evald::bench {

/// A program of benchmarks: evald-bench, and evald-gpu-bench where there is a GPU.
struct Program {
  const char* name = "";
  const char* description = "";
  std::vector<Workload> workloads;  ///< in the order in which --list names them
  void (*declare)(Command app, Options* options) = nullptr;  ///< its own options, or none
  Json (*device)(const Options& options) =
      nullptr;  ///< what it measures beside the processor, or none
};

/// Runs the workload that the command line asks for, and prints what it measured. Returns the exit
/// status: 2 for a command line that says something else, 3 when a workload fails.
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace evald::bench
