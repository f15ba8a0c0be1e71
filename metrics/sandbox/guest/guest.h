#pragma once

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

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

/// The memory in which a program's process keeps its secret (secret.cc). Shared with the zygote,
/// which reads `completion` when the process has ended.
struct SecretPages {
  CompletionPage completion;
  alignas(4096) uint8_t hiding[3 * 4096];
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
  SecretPages* secret;
  SetupPage* setup;
};

/// Notes a failed step with errno and ends this process.
[[noreturn]] void FailSetup(SetupPage* setup, const char* step);

/// The checklist of a program's process. Gives the process its one writable folder, takes
/// everything else away, and runs the program.
[[noreturn]] void StartProgram(Program& program);

/// Executes the source in this process' interpreter and records how it ended. Never returns.
[[noreturn]] void RunProgram(const Program& program);

/// In a program's process, before the program: moves the nonce and the memory shared with the
/// zygote to a place drawn for this program and wipes every other trace of them from this process.
/// Only the kernel then knows the place.
void HideSecret(Program& program);

/// The same process, after the program: where its end is noted, or nullptr for a process that the
/// program forked, whose end counts for nothing.
CompletionPage* OwnCompletion();

/// Writes the completion record, which says that the program came to its end.
void RecordCompletion();

/// Refuses, in every program from now on, what reads and writes memory by its address: see
/// audit.cc. False when the interpreter takes no audit hook.
bool RefuseMemoryAccess();

/// Runs one program to its end and fills `report`. In the zygote. Ends the zygote when the runner
/// has gone.
void Supervise(Zygote& zygote, Program& program, ProgramReport* report);

/// The idle first process of a program's pid namespace. When it ends, whatever else is in there
/// ends too.
struct FirstProcess {
  pid_t pid;
  int pidfd;
};

/// Makes a pid namespace with `first` in it, for the processes that the zygote clones from here to
/// LeavePidNamespace(). nullptr, or the step that failed, with errno.
const char* StartPidNamespace(FirstProcess* first);
const char* LeavePidNamespace();

/// Ends all processes of the namespace. Returns the CPU time of the orphans among them that had
/// ended.
uint64_t EndPidNamespace(const FirstProcess& first);

/// CLOCK_MONOTONIC.
uint64_t NowMicros();

/// User and system time.
uint64_t CpuMicros(const rusage& usage);

/// A process's waits for a processor so far.
struct Waiting {
  bool known;  ///< whether `us` holds the waits of all its threads, those that have ended included
  bool runnable;  ///< whether a thread runs or waits for a processor now
  uint64_t us;    ///< of all threads together
};

/// `cpu_ns` is the CPU time of the process behind `pidfd`, read just before: where its living
/// threads have used less, others have ended and their waits are not known.
Waiting WaitingOf(int pidfd, uint64_t cpu_ns);

/// The whole file below kProcFd as a string; false when it cannot be read.
bool ReadProc(const char* path, char* text, size_t bytes);

/// Makes the SQLite that this process has loaded with the extension module at `path`, or has built
/// in
/// (""), safe in all connections to come: see sqlite.cc. False where that cannot be had.
bool TameSqlite(const char* path);

/// With allow_processes: CPU time so far of all processes below this one, as /proc tells
/// (kProcFd), in steps of its clock (10 ms). 0 when nothing can be told.
uint64_t TreeCpuMicros();

/// Whether kProcFd shows this process and its children.
bool SeesProcesses();

/// Unsafe mode: ends and reaps every descendant of this process; adds their CPU time to `cpu_us`.
void EndDescendants(uint64_t* cpu_us);

/// Unsafe mode: removes the program's temporary folder.
void RemoveScratch(const char* folder);

}  // namespace evald::guest
