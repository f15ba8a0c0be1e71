// evald-prepare: reads other people's files for evald, which starts it. The order comes as one line
// of JSON on standard input. The answers go out as lines of JSON on standard output
// (docs/protocol.md, "Preparing").
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/problems.h"
#include "base/text.h"
#include "evald/error.h"
#include "orchestrator/prepare/confine.h"
#include "orchestrator/prepare/input.h"
#include "orchestrator/prepare/preparation.h"
#include "protocol/parent_death.h"

namespace {

using evald::Error;
using evald::ErrorKind;
using evald::Json;
using evald::PreparationInput;

std::atomic<bool> cancelled{false};

// Writes a whole message to standard output.
void Say(const Json& message) {
  const std::string line = evald::ToLine(message) + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t wrote = ::write(STDOUT_FILENO, line.data() + done, line.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ::_exit(1);  // the reader is gone
    done += static_cast<size_t>(wrote);
  }
}

[[noreturn]] void Fail(const Error& error) {
  for (const Error& one : evald::EachOf(error)) {
    Say({{"type", "error"},
         {"kind", static_cast<int>(one.kind())},
         {"message", one.message()},
         {"remedy", one.remedy()}});
  }
  // No destructor runs: one may need memory that is not there.
  ::_exit(1);
}

// The step under way, for errors that do not name it.
class Doing {
 public:
  void Set(const std::string& what) {
    what_ = what;
    Say({{"type", "doing"}, {"what", what}});
  }
  const std::string& what() const { return what_; }

 private:
  std::string what_ = "preparing";
};

// An error that a limit causes. It names the key that raises the limit.
Error OfLimit(const std::string& doing, const std::string& what, const std::string& most,
              const char* key) {
  return {ErrorKind::kInput,
          fmt::format("{}: takes more {} than preparing may ({})", doing, what, most),
          fmt::format("'limits.{}' sets that", key)};
}

Error OfMemory(const std::string& doing, uint64_t bytes) {
  return OfLimit(doing, "memory", evald::HumanBytes(bytes), "memory");
}

// A process that only reads reports a failed allocation and ends there. Otherwise std::bad_alloc
// would be thrown, and destructors that allocate, such as that of a large JSON value, would end the
// process without a word. A process that prepares takes that risk: the exception removes its
// half-written task.
struct LastWords {
  const Doing* doing = nullptr;
  uint64_t memory_bytes = 0;
  std::unique_ptr<char[]> reserve;  // freed so that the message finds memory
};
LastWords last_words;
constexpr size_t kReserveBytes = size_t{1} << 20;

void OnNoMemory() {
  static std::atomic<bool> said{false};
  thread_local bool mine = false;
  if (mine) ::_exit(1);  // the reserve was not enough either
  mine = true;
  while (said.exchange(true)) ::pause();  // another thread reports it and ends the process
  last_words.reserve.reset();
  Fail(OfMemory(last_words.doing->what(), last_words.memory_bytes));
}

void SayWhenMemoryEnds(const Doing& doing, uint64_t memory_bytes) {
  last_words = {&doing, memory_bytes, std::make_unique<char[]>(kReserveBytes)};
  std::set_new_handler(OnNoMemory);
}

void Work(const PreparationInput& input, evald::sandbox::BoxMaker* boxes, Doing* doing) {
  evald::PreparationHooks hooks;
  hooks.boxes = boxes;
  hooks.cancel = &cancelled;
  hooks.doing = [doing](const std::string& what) { doing->Set(what); };
  hooks.progress = [](size_t done, size_t total) {
    Say({{"type", "progress"}, {"done", done}, {"total", total}});
  };
  if (input.work == PreparationInput::Work::kCheck)
    return Say({{"type", "found"}, {"found", CheckInput(input, hooks)}});
  if (input.work == PreparationInput::Work::kDescribe) {
    return Say({{"type", "found"}, {"found", DescribeInput(input, hooks)}});
  }
  if (input.work == PreparationInput::Work::kJudge)
    return Say({{"type", "found"}, {"found", JudgeInput(input, hooks)}});
  const evald::Suite suite = PrepareSuite(input, hooks);
  for (const evald::SuiteTask& task : suite.tasks) Say({{"type", "task"}, {"task", ToJson(task)}});
  Json groups = Json::array();
  for (const evald::GroupDefinition& group : suite.groups) groups.push_back(ToJson(group));
  Say({{"type", "suite"},
       {"groups", std::move(groups)},
       {"chat_template", suite.chat_template ? Json(*suite.chat_template) : Json()},
       {"tokenizer_hash", suite.tokenizer_hash}});
}

void WorkOrFail(const PreparationInput& input, evald::sandbox::BoxMaker* boxes) {
  const evald::LimitsConfig& limits = input.limits;
  Doing doing;
  try {
    if (input.work != PreparationInput::Work::kPrepare)
      SayWhenMemoryEnds(doing, limits.memory_bytes);
    return Work(input, boxes, &doing);
  } catch (const Error& e) {
    if (std::strstr(e.what(), std::strerror(EFBIG)) == nullptr) Fail(e);
    Fail(OfLimit(doing.what(), "room on the disk",
                 evald::HumanBytes(limits.disk_bytes) + " for a file", "disk"));
  } catch (const std::bad_alloc&) {
    Fail(OfMemory(doing.what(), limits.memory_bytes));
  } catch (const std::length_error&) {
    Fail(OfMemory(doing.what(), limits.memory_bytes));
  } catch (const std::system_error& e) {  // no memory for a thread's stack
    Fail(OfMemory(doing.what(), limits.memory_bytes));
  } catch (const Json::exception& e) {  // the files' values were not checked for their types
    Fail(Error(ErrorKind::kInput,
               fmt::format("{}: a value is of another type than it should be ({})", doing.what(),
                           e.what()),
               "compare the file with docs/tasks.md"));
  } catch (const std::exception& e) {
    Fail(Error(ErrorKind::kInternal, fmt::format("{}: {}", doing.what(), e.what())));
  }
}

evald::Confinement ConfinementOf(const PreparationInput& input) {
  evald::Confinement confinement;
  confinement.limits = input.limits;
  confinement.threads = input.threads;
  confinement.read = input.roots.folders();
  // The results to judge are no path of a submission: they lie where the run was told to write.
  const bool judges = input.work == PreparationInput::Work::kJudge && !confinement.read.empty();
  if (judges && !input.judge.candidate.empty()) confinement.read.push_back(input.judge.candidate);
  if (input.work == PreparationInput::Work::kPrepare) {
    evald::MakeDirectories(input.cache_dir / "prepared");
    confinement.write = {input.cache_dir};
  }
  return confinement;
}

// Whether the tasks' data is read.
bool ReadsData(const PreparationInput& input) {
  return input.work == PreparationInput::Work::kPrepare ||
         input.work == PreparationInput::Work::kDescribe;
}

// Whether functions of task files may be called.
bool MayCallFunctions(const PreparationInput& input) {
  return input.task_code.allowed != evald::TaskCodeOptions::Allowed::kNo &&
         !input.task_dirs.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr,
                 "usage: %s PARENT LOG_LEVEL\nevald starts this program; there is no need to run "
                 "it by hand.\n",
                 argv[0]);
    return static_cast<int>(evald::ExitStatus::kUsage);
  }
  try {
    ::setpgid(0, 0);
    evald::protocol::DieWithParent(SIGKILL, static_cast<pid_t>(std::strtol(argv[1], nullptr, 10)));
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGTERM, [](int) { cancelled = true; });
    evald::SetUpLog("evald-prepare", argv[2]);
    const evald::UniqueFd standard_input(::dup(STDIN_FILENO));
    const PreparationInput input = evald::PreparationInputFromJson(
        evald::ParseJson(evald::ReadFile(standard_input, "standard input"), "standard input"));
    // Forked while this process may still start programs
    const std::unique_ptr<evald::sandbox::BoxMaker> boxes =
        ReadsData(input) ? evald::MakeTaskCodeBoxes(input.task_code, MayCallFunctions(input))
                         : nullptr;
    Confine(ConfinementOf(input));
    WorkOrFail(input, boxes.get());
    ::_exit(0);  // the memory is not freed piece by piece
  } catch (const Error& e) {
    Fail(e);
  }
}
