#include "orchestrator/config/engine_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "base/jsonl.h"
#include "base/program.h"
#include "evald/error.h"
#include "orchestrator/devices/programs.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Engines answer within milliseconds, but a machine may be busy.
constexpr std::chrono::seconds kPatience{60};

// Any worker program knows every engine's settings.
fs::path AnyWorker(const fs::path& binaries) {
  const fs::path gpu = ProgramPath(binaries, kGpuWorker);
  const bool only_gpu =
      ::access((binaries / kCpuWorker).c_str(), X_OK) != 0 && ::access(gpu.c_str(), X_OK) == 0;
  return only_gpu ? gpu : binaries / kCpuWorker;
}

[[noreturn]] void Refuse(const EngineConfig& engine, const Json& answer, const std::string& where) {
  const std::string key = FieldOr<std::string>(answer, "key", "", where);
  const auto given = engine.where.find(key);
  const auto whole = engine.where.find("");
  std::string place = "eval.yaml";
  if (whole != engine.where.end()) place = whole->second;
  if (given != engine.where.end()) place = given->second;
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: key 'engine{}{}': {}", place, key.empty() ? "" : ".", key,
                          Field<std::string>(answer, "error", where)),
              FieldOr<std::string>(answer, "remedy", "", where));
}

}  // namespace

void CheckEngineSettings(const EvalConfig& config, const fs::path& binaries) {
  const fs::path program = AnyWorker(binaries);
  std::vector<std::string> arguments = {
      "--check-settings", "--engine", config.engine.name, "--settings", "-", "--log-level", "off"};
  if (config.programs_here) arguments.emplace_back("--check-programs");
  const std::string output =
      OutputOf(program, arguments, kPatience, ToLine(config.engine.settings));
  const std::string where = program.string() + " --check-settings";
  Json answer;
  try {
    answer = ParseJson(output, where);
  } catch (const Error& e) {
    throw Error(ErrorKind::kInfrastructure, e.message(), "see whether it is of this build");
  }
  if (!answer.is_object() || !FieldOr<bool>(answer, "ok", false, where)) {
    Refuse(config.engine, answer, where);
  }
}

}  // namespace evald
