#pragma once

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "metrics/sandbox/wire.h"

// The guest is a small library that the zygote's Python loads. It forks, contains and judges
// programs in machine code, which Python code cannot reach: a program's end is recorded after the
// interpreter has returned from it, in memory that no Python object knows. It uses libc and a few
// functions of Python's stable ABI, which the interpreter provides.

struct _object;
using PyObject = _object;

namespace evald::guest {

using sandbox::ProgramReport;
using sandbox::ProgramRequest;
using sandbox::ZygoteConfig;

/// The zygote's data for all programs.
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
  uint64_t output_bytes;
  char output[sandbox::kOutputBytes];
};

/// The memory in which a program's process keeps its secret (secret.cc). Shared with the zygote,
/// which reads `completion` once the process has ended.
struct SecretPages {
  CompletionPage completion;
  alignas(4096) uint8_t hiding[3 * 4096];
};

/// Written by the program's process until the program begins. Shared with the zygote.
struct SetupPage {
  int32_t error_number;
  char step[sandbox::kStepBytes];
};

/// One program from its request to its end.
struct Program {
  const Zygote* zygote;
  ProgramRequest request;
  char* source;  ///< request.source_bytes bytes
  SecretPages* secret;
  SetupPage* setup;
};

/// Records a failed step with errno, and ends this process.
[[noreturn]] void FailSetup(SetupPage* setup, const char* step);

/// The checklist of a program's process: makes the process's one writable folder, takes everything
/// else away, and runs the program.
[[noreturn]] void StartProgram(Program& program);

/// Executes the source in this process's interpreter and records how it ended. Never returns.
[[noreturn]] void RunProgram(const Program& program);

/// Called in a program's process before the program: moves the nonce and the memory shared with the
/// zygote to a random place, drawn for this program, and wipes every other trace of them from this
/// process. Only the kernel then knows the place.
void HideSecret(Program& program);

/// Called in the same process after the program: the page for recording its end. nullptr in a
/// process that the program forked, whose end counts for nothing.
CompletionPage* OwnCompletion();

/// Writes the completion record, which says that the program came to its end.
void RecordCompletion();

/// From now on refuses, in every program, modules that read and write memory by its address, and
/// extension modules outside sys.path as it is now: see audit.cc. `tmp_is_fresh`: /tmp is each
/// program's own. False if the interpreter takes no audit hook.
bool RefuseMemoryAccess(bool tmp_is_fresh);

/// Changes the functions of Python's library that take an integer for an address, before the audit
/// hook is there: see addresses.cc. False if this interpreter keeps them out of reach.
bool RefuseAddresses();

/// For the audit hook: the events of signal.pthread_kill, and of fcntl.fcntl or fcntl.ioctl. 0, or
/// -1 with an exception set.
int AuditThreadSignal(PyObject* arguments);
int AuditDescriptor(PyObject* arguments, bool is_ioctl);

/// Leaves programs no code objects but those that the compiler makes, before the audit hook is
/// there: see bytecode.cc. False if this interpreter keeps the functions in question out of reach.
bool RefuseBytecode();

/// For the audit hook: the events of making a code object. 0, or -1 with an exception set.
int AuditCode();

/// For the audit hook: the program adds an audit hook of its own. 0, or -1 with an exception set.
int AuditNewHook();

/// For the audit hook: one of the interpreter's own files was opened.
void NoteOpened(const char* path);

/// Whether the path is below the interpreter's library and packages. Judged by the text: what the
/// file system says of a path can change before the file is read. Below these folders everything is
/// read-only.
bool IsOwnFile(const char* path);

/// Keeps buffers that the library lends to Python code from outliving the loan: see buffers.cc.
bool KeepBuffers();

/// Converts indexes and values before arrays and mappings of memory look at their own size: see
/// indexes.cc.
bool CheckIndexes();

/// Refuses a second `__init__` of objects whose methods may be running: see restarts.cc. Called
/// after KeepBuffers.
bool RefuseRestarts();

/// Refuses calls of an iterator by the code that the iterator calls: see reentry.cc.
bool RefuseReentry();

/// Keeps what C code works with until it is done: see states.cc.
bool KeepStates();

/// Why a program does not get this module: see modules.cc. nullptr if it does. `loads`: its machine
/// code is about to be started.
const char* RefusalOfModule(const char* name, const char* last_part, bool loads);

/// The same for modules within the interpreter's own file. Loads those that no program may load a
/// second time.
bool RefuseModules();

/// Runs one program to its end and fills `report`. Called in the zygote. Ends the zygote if the
/// runner is gone.
void Supervise(Zygote& zygote, Program& program, ProgramReport* report);

/// The idle first process of a program's pid namespace. When it ends, all other processes in the
/// namespace end, too.
struct FirstProcess {
  pid_t pid;
  int pidfd;
};

/// Makes a pid namespace with `first` in it. Processes that the zygote clones until
/// LeavePidNamespace() belong to it. Returns nullptr, or the step that failed, with errno.
const char* StartPidNamespace(FirstProcess* first);
const char* LeavePidNamespace();

/// Ends all processes of the namespace. Returns the CPU time of those orphans among them that had
/// ended.
uint64_t EndPidNamespace(const FirstProcess& first);

/// CLOCK_MONOTONIC.
uint64_t NowMicros();

/// User and system time.
uint64_t CpuMicros(const rusage& usage);

/// The time that a process has waited for a processor.
struct Waiting {
  bool known;     ///< whether `us` covers all its threads, including those that have ended
  bool runnable;  ///< whether a thread runs or waits for a processor now
  uint64_t us;    ///< of all threads together
};

/// `cpu_ns` is the CPU time of the process behind `pidfd`, read just before. If its living threads
/// have used less, others have ended, and their waits are unknown.
Waiting WaitingOf(int pidfd, uint64_t cpu_ns);

/// Reads the whole file below kProcFd as a string. False if it cannot be read.
bool ReadProc(const char* path, char* text, size_t bytes);

/// Makes SQLite safe in all later connections: see sqlite.cc. It is the SQLite loaded with the
/// extension module at `path`, or the built-in one (""). False if that is impossible.
bool TameSqlite(const char* path);

/// With allow_processes: the CPU time so far of all processes below this one, from /proc (kProcFd),
/// in steps of its clock (10 ms). 0 if it is unknown.
uint64_t TreeCpuMicros();

/// The resident memory of all processes below this one, from /proc (kProcFd). Pages that they share
/// count for each. 0 if it is unknown.
uint64_t TreeMemoryBytes();

/// Whether kProcFd shows this process and its children.
bool SeesProcesses();

/// Unsafe mode: ends and reaps every descendant of this process, and adds their CPU time to
/// `cpu_us`.
void EndDescendants(uint64_t* cpu_us);

/// Unsafe mode: removes the program's temporary folder.
void RemoveScratch(const char* folder);

}  // namespace evald::guest
