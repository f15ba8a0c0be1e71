#pragma once

#include <vector>

#include "base/command_line.h"
#include "bench/bench.h"

namespace evald::bench {

/// A program of benchmarks: evald-bench, and evald-gpu-bench if there is a GPU.
struct Program {
  const char* name = "";
  const char* description = "";
  std::vector<Workload> workloads;  ///< in the order in which --list names them
  void (*declare)(Command app, Options* options) = nullptr;  ///< its own options, or none
  Json (*device)(const Options& options) =
      nullptr;  ///< figures of a device beside the processor, or none
};

/// Runs the workload that the command line names, and prints its result. Returns the exit status: 2
/// for a wrong command line, 3 if a workload fails.
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace evald::bench
