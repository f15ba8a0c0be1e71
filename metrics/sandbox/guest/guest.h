#pragma once

#include <linux/filter.h>

#include "metrics/sandbox/wire.h"

// The guest is a small library that the zygote's Python loads. It forks, contains and judges
// programs in machine code, where Python code cannot reach: a program's end is recorded after the
// interpreter has returned from it, in memory of which no Python object knows. It uses libc and a
// handful of functions of Python's stable ABI, which the interpreter itself provides.

struct _object;
using PyObject = _object;

namespace evald::guest {

using sandbox::ProgramReport;
using sandbox::ProgramRequest;
using sandbox::ZygoteConfig;

/// What the zygote knows for all programs.
struct Zygote {
  ZygoteConfig config;
  sock_filter filter[sandbox::kFilterInstructionsMax];
  PyObject* exec_function;  ///< builtins.exec
  char scratch[64];         ///< unsafe mode: this program's temporary folder
};

/// Written by the program's process when the program ends. Shared with the zygote.
struct CompletionPage {
  uint8_t record[sandbox::kNonceBytes];
  uint32_t detail_bytes;
  char detail[sandbox::kDetailBytes];
};

/// Written by the program's init and, until the program begins, by its process. Shared.
struct SetupPage {
  int32_t error_number;
  char step[sandbox::kStepBytes];
  int32_t wait_status;
};

/// One program on its way.
struct Program {
  const Zygote* zygote;
  ProgramRequest request;
  char* source;  ///< request.source_bytes bytes
  CompletionPage* completion;
  SetupPage* setup;
};

/// Notes a failed step with errno and ends this process.
[[noreturn]] void FailSetup(SetupPage* setup, const char* step);

/// The program's init: pid 1 of a fresh pid namespace. Sets up the one writable place, gives up all
/// privileges, forks the program's process (which sets its limits and its filter), reaps all that
/// is orphaned, and ends when the program's process has ended; with it everything in the namespace.
[[noreturn]] void RunInit(const Program& program);

/// Executes the source in this process' interpreter and records how it ended. Never returns.
[[noreturn]] void RunProgram(const Program& program);

/// Runs one program to its end and fills `report`. In the zygote. Ends the zygote when the runner
/// has gone.
void Supervise(Zygote& zygote, const Program& program, ProgramReport* report);

/// Unsafe mode: ends and reaps every descendant of this process; adds their CPU time to `cpu_us`.
void EndDescendants(uint64_t* cpu_us);

/// Unsafe mode: removes the program's temporary folder.
void RemoveScratch(const char* folder);

}  // namespace evald::guest
