#include "orchestrator/prepare/preparer.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/log.h"
#include "base/problems.h"
#include "evald/error.h"
#include "orchestrator/prepare/child.h"
#include "prepared/cache.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "evald-prepare";
constexpr size_t kKeyBytes = 32;
// A submitter waits no longer than this for an answer.
constexpr double kCheckSecondsMax = 60;
// A process that prepares gets time to leave a sound cache. A process that only reads leaves
// nothing.
constexpr double kPrepareGraceSeconds = 2;

// The error that the process reported.
Error ErrorFrom(const Json& message) {
  const int kind = FieldOr<int>(message, "kind", static_cast<int>(ErrorKind::kInternal), kProgram);
  const bool known = kind >= 0 && kind <= static_cast<int>(ErrorKind::kInternal);
  return {known ? static_cast<ErrorKind>(kind) : ErrorKind::kInternal,
          Field<std::string>(message, "message", kProgram),
          FieldOr<std::string>(message, "remedy", "", kProgram)};
}

// The task's folder is made from a key here: no path is taken from the process.
SuiteTask TaskFrom(const Json& message, const fs::path& cache_dir) {
  SuiteTask task = SuiteTaskFromJson(Field<Json>(message, "task", kProgram));
  const std::string key = task.prepared.string();
  if (key.size() != kKeyBytes || key.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw Error(ErrorKind::kInternal,
                fmt::format("{}: found '{}', expected the key of a prepared task", kProgram, key));
  }
  task.prepared = cache_dir / "prepared" / key;
  return task;
}

[[noreturn]] void ThrowEnd(const ChildEnd& end, const std::string& doing, bool check,
                           double seconds) {
  switch (end.why) {
    case ChildEnd::Why::kCancelled:
      throw Error(ErrorKind::kInfrastructure, "preparation was cancelled");
    case ChildEnd::Why::kTimeout:
      if (check && seconds == kCheckSecondsMax) {  // a slow host is no fault of the files
        throw Error(ErrorKind::kInfrastructure,
                    fmt::format("{}: takes longer than a check may ({:g} s)", doing, seconds),
                    "try again when the host and its storage are less busy");
      }
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: takes longer than preparing may ({:g} s)", doing, seconds),
                  "'limits.seconds' sets that");
    case ChildEnd::Why::kTooMuchSaid:
      throw Error(ErrorKind::kInput, fmt::format("{}: the answer is too long to be taken", doing),
                  "make its task files smaller");
    case ChildEnd::Why::kEnded:
      break;
  }
  if (end.signal == SIGKILL) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("{}: the process that prepares was killed, twice", doing),
        "see whether the host has memory left; 'limits.memory' bounds what preparing takes");
  }
  throw Error(
      ErrorKind::kInput,
      end.signal != 0
          ? fmt::format("{}: the process that prepares broke down (signal {})", doing, end.signal)
          : fmt::format("{}: the process that prepares ended without an answer (status {})", doing,
                        end.status),
      "the file may be broken, or made to do harm");
}

}  // namespace

Preparer::Preparer(fs::path binaries) : program_(std::move(binaries) / "evald-prepare") {}

void Preparer::Run(const PreparationInput& input, const Cancelled& cancelled,
                   const OnMessage& on_message) const {
  const bool check = input.work == PreparationInput::Work::kCheck;
  const double seconds =
      check ? std::min(kCheckSecondsMax, input.limits.seconds) : input.limits.seconds;
  const double grace = input.work == PreparationInput::Work::kPrepare ? kPrepareGraceSeconds : 0;
  const ChildOrder order{program_, ToLine(ToJson(input)) + "\n", seconds, cancelled, grace};
  for (int life = 1;; ++life) {
    std::string doing = "preparing";
    bool answered = false;
    std::vector<Error> errors;
    const ChildEnd end = RunChild(order, [&](std::string_view line) {
      const Json message = ParseJson(line, kProgram);
      const auto type = Field<std::string>(message, "type", kProgram);
      if (type == "doing") {
        doing = Field<std::string>(message, "what", kProgram);
      } else if (type == "error") {
        errors.push_back(ErrorFrom(message));
      } else {
        answered = answered || type == "found" || type == "suite";
        on_message(message);
      }
    });
    if (!errors.empty() && end.why != ChildEnd::Why::kCancelled &&
        end.why != ChildEnd::Why::kTimeout) {
      if (errors.size() > 1) throw Problems(std::move(errors));
      throw Error(errors.front());
    }
    if (answered && end.why == ChildEnd::Why::kEnded && end.signal == 0 && end.status == 0) return;
    const bool killed = end.why == ChildEnd::Why::kEnded && end.signal == SIGKILL;
    if (!killed || life > 1) ThrowEnd(end, doing, check, seconds);
    log::Warn("{}: the process that prepares was killed; it is started once more", doing);
  }
}

Suite Preparer::Prepare(const PreparationInput& input,
                        const std::function<void(size_t, size_t)>& progress,
                        const Cancelled& cancelled) const {
  Suite suite;
  PreparationInput order = input;
  const auto use = std::make_shared<const PreparedUse>(input.cache_dir);
  order.use = use->file();
  Run(order, cancelled, [&](const Json& message) {
    const auto type = Field<std::string>(message, "type", kProgram);
    if (type == "progress") {
      if (message.at("done") == 0) suite = {};
      progress(Field<uint64_t>(message, "done", kProgram),
               Field<uint64_t>(message, "total", kProgram));
    } else if (type == "task") {
      suite.tasks.push_back(TaskFrom(message, input.cache_dir));
    } else if (type == "suite") {
      for (const Json& group : Field<std::vector<Json>>(message, "groups", kProgram)) {
        suite.groups.push_back(GroupFromJson(group, kProgram));
      }
      const auto chat = FieldOr<std::string>(message, "chat_template", "", kProgram);
      if (!message.at("chat_template").is_null()) suite.chat_template = chat;
      suite.tokenizer_hash = Field<std::string>(message, "tokenizer_hash", kProgram);
    }
  });
  suite.use = use;
  return suite;
}

Json Preparer::Ask(const PreparationInput& input, const Cancelled& cancelled) const {
  Json found;
  Run(input, cancelled, [&](const Json& message) {
    if (Field<std::string>(message, "type", kProgram) == "found")
      found = Field<Json>(message, "found", kProgram);
  });
  return found;
}

Judgement Preparer::Judge(const PreparationInput& input, const Cancelled& cancelled) const {
  return JudgementFromJson(Ask(input, cancelled), kProgram);
}

Judgement Preparer::JudgeOrSayWhy(const PreparationInput& input, const Cancelled& cancelled) const {
  const auto not_judged = [&](const Error& why) {
    log::Error("{}: the results could not be judged: {}", input.judge.candidate.string(),
               why.what());
    return NotJudged(input.judge, why);
  };
  try {
    return Judge(input, cancelled);
  } catch (const Error& e) {
    return not_judged(e);
  } catch (const std::exception& e) {
    return not_judged(Error(ErrorKind::kInternal, e.what()));
  }
}

}  // namespace evald
