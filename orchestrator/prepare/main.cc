// evald-prepare: reads other people's files for evald, which starts it. What is to be done comes as one line of JSON
// on standard input; what is found goes out as lines of JSON on standard output (docs/protocol.md, "Preparing").
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "evald/error.h"
#include "orchestrator/prepare/confine.h"
#include "orchestrator/prepare/input.h"
#include "orchestrator/run/preparation.h"
#include "protocol/parent_death.h"

namespace {

using evald::Error;
using evald::ErrorKind;
using evald::Json;
using evald::PreparationInput;

std::atomic<bool> cancelled{false};

// Standard output, written whole.
void Say(const Json& message) {
  const std::string line = evald::ToLine(message) + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t wrote = ::write(STDOUT_FILENO, line.data() + done, line.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ::_exit(1);  // nobody listens any more
    done += static_cast<size_t>(wrote);
  }
}

[[noreturn]] void Fail(const Error& error) {
  Say({{"type", "error"},
       {"kind", static_cast<int>(error.kind())},
       {"message", error.message()},
       {"remedy", error.remedy()}});
  // Nothing is destroyed: that may need the memory that is not there.
  ::_exit(1);
}

// What is being done, for errors that know nothing of it.
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

// An error that comes of a limit names the key that raises it.
Error OfLimit(const std::string& doing, const std::string& what, const std::string& most, const char* key) {
  return {ErrorKind::kInput, fmt::format("{}: takes more {} than preparing may ({})", doing, what, most),
          fmt::format("'limits.{}' sets that", key)};
}

void Work(const PreparationInput& input, Doing* doing) {
  evald::PreparationHooks hooks;
  hooks.cancel = &cancelled;
  hooks.doing = [doing](const std::string& what) { doing->Set(what); };
  hooks.progress = [](size_t done, size_t total) { Say({{"type", "progress"}, {"done", done}, {"total", total}}); };
  if (input.work == PreparationInput::Work::kCheck) return Say({{"type", "found"}, {"found", CheckInput(input, hooks)}});
  if (input.work == PreparationInput::Work::kDescribe) {
    return Say({{"type", "found"}, {"found", DescribeInput(input, hooks)}});
  }
  const evald::Suite suite = PrepareSuite(input, hooks);
  for (const evald::SuiteTask& task : suite.tasks) Say({{"type", "task"}, {"task", ToJson(task)}});
  Json groups = Json::array();
  for (const evald::GroupDefinition& group : suite.groups) groups.push_back(ToJson(group));
  Say({{"type", "suite"},
       {"groups", std::move(groups)},
       {"chat_template", suite.chat_template ? Json(*suite.chat_template) : Json()},
       {"tokenizer_hash", suite.tokenizer_hash}});
}

void WorkOrFail(const PreparationInput& input) {
  const evald::LimitsConfig& limits = input.limits;
  Doing doing;
  try {
    return Work(input, &doing);
  } catch (const Error& e) {
    if (std::strstr(e.what(), std::strerror(EFBIG)) == nullptr) Fail(e);
    Fail(OfLimit(doing.what(), "room on the disk", evald::HumanBytes(limits.disk_bytes) + " for a file", "disk"));
  } catch (const std::bad_alloc&) {
    Fail(OfLimit(doing.what(), "memory", evald::HumanBytes(limits.memory_bytes), "memory"));
  } catch (const std::length_error&) {
    Fail(OfLimit(doing.what(), "memory", evald::HumanBytes(limits.memory_bytes), "memory"));
  } catch (const std::system_error& e) {  // a thread that finds no room for its stack
    Fail(OfLimit(doing.what(), "memory", evald::HumanBytes(limits.memory_bytes), "memory"));
  } catch (const std::exception& e) {
    Fail(Error(ErrorKind::kInternal, fmt::format("{}: {}", doing.what(), e.what())));
  }
}

evald::Confinement ConfinementOf(const PreparationInput& input) {
  evald::Confinement confinement;
  confinement.limits = input.limits;
  confinement.threads = input.threads;
  confinement.read = input.roots.folders();
  if (input.work == PreparationInput::Work::kPrepare) {
    evald::MakeDirectories(input.cache_dir / "prepared");
    confinement.write = {input.cache_dir};
  }
  return confinement;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s PARENT LOG_LEVEL\nevald starts this program; nobody else needs to.\n", argv[0]);
    return static_cast<int>(evald::ExitStatus::kUsage);
  }
  try {
    ::setpgid(0, 0);
    evald::protocol::DieWithParent(SIGKILL, static_cast<pid_t>(std::strtol(argv[1], nullptr, 10)));
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGTERM, [](int) { cancelled = true; });
    evald::SetUpLog("evald-prepare", argv[2]);
    const evald::UniqueFd standard_input(::dup(STDIN_FILENO));
    const PreparationInput input =
        evald::PreparationInputFromJson(evald::ParseJson(evald::ReadFile(standard_input, "standard input"), "standard input"));
    Confine(ConfinementOf(input));
    WorkOrFail(input);
    ::_exit(0);  // what is in memory goes at once
  } catch (const Error& e) {
    Fail(e);
  }
}
