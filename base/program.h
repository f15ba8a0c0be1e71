#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evald/error.h"

namespace evald {

/// A program that could not be started: nothing of it has run.
class NotStarted : public Error {
 public:
  explicit NotStarted(const std::string& message) : Error(ErrorKind::kInfrastructure, message) {}
};

/// A program to run to its end.
struct ProgramCall {
  /// Its path; a name without a slash is looked for in the folders of PATH
  std::filesystem::path program;
  std::vector<std::string> arguments = {};
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  /// Of its standard input; without it the program inherits this process's
  std::optional<std::string> input = {};
  std::map<std::string, std::string> environment = {};  ///< in addition to this process's
  bool clears_environment = false;                      ///< the program sees only `environment`
  bool keeps_errors = false;  ///< ProgramResult::errors is asked for; else they are inherited
  /// Once this is true, the program is given up. Outlives the call; null: it is never given up
  const std::atomic<bool>* given_up = nullptr;
};

/// Bytes of a text that ProgramResult keeps at most.
inline constexpr size_t kProgramOutputMax = 1 << 20;

/// How a program ended.
struct ProgramResult {
  int status = 0;  ///< its exit status, or 128 + the signal that ended it
  std::string
      output;  ///< what it wrote to standard output, at most kProgramOutputMax and a little more
  std::string errors;  ///< the same of standard error, if asked for
};

/// The path of a program that can be executed: `program` itself if it has a slash, else found in
/// the folders of PATH (without that variable /bin and /usr/bin, as by execvp(3)). "" if there is
/// none.
std::filesystem::path OnPath(const std::string& program);

/// Pointers to `texts`, with a null at the end, as exec(3) takes arguments and variables. They hold
/// as long as `texts` does not change.
std::vector<char*> ExecPointers(std::vector<std::string>* texts);

/// Runs a program until it ends. Throws NotStarted, and Error(kInfrastructure) if it does not end
/// in time or is given up (ProgramCall::given_up). In these cases the program and its process group
/// are killed; if the kernel does not let it die, it is left behind. Blocks; any thread.
ProgramResult RunProgram(const ProgramCall& call);

/// Starts a program, which goes on by itself: nobody waits for its end or reads what it writes.
/// Throws NotStarted. Any thread.
void StartProgram(const ProgramCall& call);

/// What a program writes to standard output until it ends, whatever its exit status.
std::string OutputOf(const std::filesystem::path& program, std::vector<std::string> arguments,
                     std::chrono::milliseconds timeout,
                     const std::optional<std::string>& input = std::nullopt);

}  // namespace evald
