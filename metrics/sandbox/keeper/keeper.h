#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include "metrics/sandbox/keeper/keeper_wire.h"

// The keeper is a small static program, the first process of a sandbox for programs that are not
// run by the warm Python: it writes the program's files, runs the compiler and then the program,
// and watches them from outside their filter. Everything ends with it.

namespace evald::keeper {

using sandbox::KeeperConfig;
using sandbox::KeeperReport;
using sandbox::StepLimits;

/// Filter with the index 1 allows new processes.
struct Keeper {
  KeeperConfig config;
  sock_filter filters[2][sandbox::kFilterInstructionsMax];
  const char* folder;  ///< the program's
};

/// One step, as the runner asked for it.
struct Step {
  StepLimits limits;
  char** arguments;
  char** environment;
  int input;  ///< a file
};

/// Bytes that a step has written, up to a limit.
struct Kept {
  char* bytes;
  uint64_t count;
  uint64_t capacity;
};

/// The output and the errors of a step.
struct Said {
  Kept output;
  Kept errors;
};

/// Adds bytes, at most until `most` are kept. False if some did not find room.
bool Keep(Kept* kept, const char* bytes, uint64_t count, uint64_t most);

/// Adds bytes and keeps the last `most`.
void KeepLast(Kept* kept, const char* bytes, uint64_t count, uint64_t most);

/// Starts the step's process with its restrictions. Returns nullptr, or the failed step with errno;
/// `output` and `errors` are the ends to read from.
const char* StartStep(const Keeper& keeper, const Step& step, pid_t* pid, int* pidfd, int* output,
                      int* errors, bool* is_exec);

/// Runs one step to the end of all its processes.
void RunStep(const Keeper& keeper, const Step& step, KeeperReport* report, Said* said);

}  // namespace evald::keeper
