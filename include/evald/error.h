#pragma once

#include <exception>
#include <string>

namespace evald {

/// The subject of a failure. It decides the exit status of a command (see ExitStatus).
enum class ErrorKind {
  kUsage,           ///< the command line or eval.yaml: exit status 2
  kInput,           ///< a checkpoint, dataset, task or generations file: exit status 2
  kInfrastructure,  ///< disk, memory, processes, network: exit status 3, worth another try
  kInternal,        ///< an assumption of evald itself does not hold: exit status 3
};

/// The one way in which evald reports failure. An Error is thrown by value and caught by reference.
/// Each level adds context on the way up:
///
///     try { ReadHeader(file); } catch (Error& e) { e.AddContext(path); throw; }
///
/// `what()` is one line, outermost context first: "context: message; remedy". A message names the
/// value found and the value expected. The remedy names the step that a person can take. Line
/// breaks and zeros in foreign text are spelled out (`\n`, `\x00`): a name must neither forge a
/// line of output nor cut the message.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, std::string remedy = "")
      : kind_(kind), message_(OnOneLine(message)), remedy_(OnOneLine(remedy)) {
    Compose();
  }

  const char* what() const noexcept override { return text_.c_str(); }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& remedy() const { return remedy_; }

  /// Puts `context` in front: a file, a line, or the operation that failed.
  Error& AddContext(const std::string& context) {
    message_ = OnOneLine(context) + ": " + message_;
    Compose();
    return *this;
  }

 private:
  static std::string OnOneLine(const std::string& text) {
    std::string line;
    line.reserve(text.size());
    for (const char c : text) {
      if (c == '\n') {
        line += "\\n";
      } else if (c == '\r') {
        line += "\\r";
      } else if (c == '\0') {
        line += "\\x00";
      } else {
        line += c;
      }
    }
    return line;
  }

  void Compose() { text_ = remedy_.empty() ? message_ : message_ + "; " + remedy_; }

  ErrorKind kind_;
  std::string message_;
  std::string remedy_;
  std::string text_;
};

/// Exit statuses of every `evald` command.
enum class ExitStatus {
  kDone = 0,          ///< done, every gate met
  kGateFailed = 1,    ///< a gate failed
  kUsage = 2,         ///< usage, configuration or input
  kIncomplete = 3,    ///< incomplete, for a cause outside the model
  kInconclusive = 4,  ///< too few samples for a gate to decide
};

inline ExitStatus ExitStatusFor(ErrorKind kind) {
  return kind == ErrorKind::kUsage || kind == ErrorKind::kInput ? ExitStatus::kUsage
                                                                : ExitStatus::kIncomplete;
}

}  // namespace evald
