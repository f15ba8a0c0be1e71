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

/// Written by the program's process until the program begins. Shared with the zygote.
struct SetupPage {
  int32_t error_number;
  char step[sandbox::kStepBytes];
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

/// The checklist of a program's process, which is the first of a fresh pid namespace: when it ends,
/// whatever it has left behind ends too. Gives the process its one writable folder, takes
/// everything else away, and runs the program.
[[noreturn]] void StartProgram(const Program& program);

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
