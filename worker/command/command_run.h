#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "evald/generation.h"
#include "evald/task.h"
#include "worker/command/model_api.h"
#include "worker/command/program.h"
#include "worker/engine/engine.h"

namespace evald::command {

struct CommandOrder {
  std::string task;
  CommandSpec spec;
  std::filesystem::path checkpoint;  ///< the folder that is loaded; "" for none
  std::filesystem::path folder;      ///< is made; the program begins there
  std::filesystem::path log;         ///< the program's output is appended there
};

/// A command at work: the program, and the API of the model that it asks. Until this ends, the
/// engine belongs to it, and has no other request. The engine's thread only.
class CommandRun {
 public:
  /// Opens the API and starts the program. Throws Error(kInput) for a program that cannot be
  /// started, and Error(kInfrastructure).
  CommandRun(Engine* engine, CommandOrder order);

  /// Waits at most `time` for the end of the program, and returns its scores as an answer, whose
  /// text is {"accuracy": 0.5}. Throws Error(kInput), with the last lines of the program's output,
  /// if the program failed, took too long, or left no scores; and Error(kInfrastructure) if the
  /// model stopped answering, which is no fault of the program's.
  std::optional<Generation> Wait(std::chrono::milliseconds time);

 private:
  using Values = std::map<std::string, std::string>;
  Values PlaceholderValues() const;
  ProgramOrder OrderFor(const Values& values) const;
  std::map<std::string, std::string> Environment(const Values& values) const;
  void WriteHead(const ProgramOrder& order) const;
  void CheckEnd(const ProgramEnd& end) const;
  std::string Ending(const ProgramEnd& end) const;
  std::string LastLines() const;

  CommandOrder order_;
  ModelApi api_;
  std::optional<Program> program_;
};

}  // namespace evald::command
