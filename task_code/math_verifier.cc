#include "task_code/math_verifier.h"

#include <fmt/format.h>

#include <cctype>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr const char* kMathAnswer = "an answer of the process that compares mathematics";
constexpr const char* kMathWho = "the process that compares mathematics";
constexpr const char* kMathRemedy = "see docs/metrics.md, \"Mathematics by value\"";
constexpr size_t kMathAnswerBytesMax = size_t{1} << 20;
constexpr double kImportSeconds = 120;
// A machine may be busy with other work. Processor time is what limits a pair.
constexpr double kWallSeconds = 600;

// "math-verify" of "math_verify": names of packages have several spellings.
std::string PlainName(std::string name) {
  for (char& c : name) {
    c = c == '_' || c == '.' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

Json VersionsOf(const Json& installed) {
  static constexpr const char* kUsed[] = {"math-verify", "latex2sympy2-extended", "sympy", "mpmath",
                                          "antlr4-python3-runtime"};
  Json versions = {{"python", installed.at("python")}, {"packages", Json::object()}};
  for (const char* used : kUsed) {
    for (const auto& [name, version] : installed.at("packages").items()) {
      if (PlainName(name) == used) versions["packages"][used] = version;
    }
  }
  return versions;
}

[[noreturn]] void ThrowMathFault(const Json& fault, const std::string& python) {
  constexpr size_t kMessageBytes = 1000;
  const auto missing = FieldOr<std::string>(fault, "missing", "", kMathAnswer);
  const std::string remedy = fmt::format(
      "install the package ({} -m pip install math-verify), or name a Python that "
      "has it with 'task_python'",
      python);
  if (missing == "math_verify") {
    throw Error(ErrorKind::kInput,
                fmt::format("the metric math_verify takes the Python package math-verify, which {} "
                            "does not have",
                            python),
                remedy);
  }
  throw Error(ErrorKind::kInput,
              fmt::format("the Python package math-verify of {}: {}: {}", python,
                          PrintableLine(Field<std::string>(fault, "type", kMathAnswer)),
                          PrintableLine(Shortened(Field<std::string>(fault, "message", kMathAnswer),
                                                  kMessageBytes))),
              remedy);
}

}  // namespace

MathVerifier::MathVerifier(const TaskCodeOptions& options, sandbox::BoxMaker* boxes,
                           double seconds_per_pair)
    : python_(options.python),
      seconds_per_pair_(seconds_per_pair),
      box_(boxes != nullptr ? boxes->Make() : sandbox::StartBoxProcess(TaskCodeBox(options)),
           {kMathWho, kMathRemedy}) {
  Call({{"call", "load_math"}}, kImportSeconds);
  versions_ = VersionsOf(box_.Installed());
}

Json MathVerifier::Call(const Json& call, double wall_seconds) {
  const int64_t deadline_us = MonotonicMicros() + static_cast<int64_t>(wall_seconds * 1e6);
  box_.Send(ToLine(call), deadline_us);
  const Json answer = ParseJson(box_.Receive(kMathAnswerBytesMax, deadline_us), kMathAnswer);
  box_.TakeSaid();  // warnings of the package's parser
  const bool ok = answer.is_object() && answer.contains("ok") && answer["ok"].is_object();
  if (!ok) ThrowMathFault(Field<Json>(answer, "error", kMathAnswer), python_);
  return answer["ok"];
}

MathVerifier::Verdict MathVerifier::Compare(const std::string& gold, const std::string& answer,
                                            const Json& settings) {
  Json said;
  try {
    said = Call({{"call", "compare_math"},
                 {"gold", gold},
                 {"answer", answer},
                 {"settings", settings},
                 {"seconds", seconds_per_pair_}},
                kWallSeconds);
  } catch (const Error& error) {
    // The process has ended: the limit of time came in a long step of C, or there was no memory.
    if (error.kind() != ErrorKind::kInput || !error.message().starts_with(kMathWho)) throw;
    // Somebody else has ended it: the host has no memory left, or a person did.
    if (error.message().find(::strsignal(SIGKILL)) != std::string::npos)
      throw Error(ErrorKind::kInfrastructure, error.message(), error.remedy());
    return Verdict::kOverLimit;
  }
  if (FieldOr<bool>(said, "over", false, kMathAnswer)) return Verdict::kOverLimit;
  return Field<bool>(said, "equal", kMathAnswer) ? Verdict::kEqual : Verdict::kUnequal;
}

}  // namespace evald
