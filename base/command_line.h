#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace evald {

/// One option, flag or argument of a command. It is a handle that may be copied, valid as long as
/// the CommandLine. Methods that describe the option return the handle.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}

  CommandOption Required();
  CommandOption ExistingFile();
  CommandOption ExistingFolder();
  CommandOption ExistingPath();
  CommandOption Within(int least, int most);
  CommandOption Within(double least, double most);
  CommandOption Positive();
  CommandOption NonNegative();
  CommandOption OneOf(const std::vector<std::string>& words);
  /// The name of the value in --help, for example FILE; "" leaves it out.
  CommandOption Metavar(const std::string& name);
  /// The heading in --help for the option; "" hides the option.
  CommandOption Group(const std::string& heading);
  /// The environment variable with the value if the option is not given.
  CommandOption Environment(const std::string& variable);
  /// One argument may hold several values with commas between them.
  CommandOption CommaSeparated();
  /// An option for a list takes one argument each time it is given. Without this it takes all up to
  /// the next option.
  CommandOption OneArgument();
  /// The option may be given without a value.
  CommandOption ValueOptional();

  bool given() const;        ///< after CommandLine::Parse
  std::string name() const;  ///< for example --limit

 private:
  CLI::Option* option_;
};

/// A command with its options. It is a handle that may be copied, valid as long as the CommandLine.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  /// A command below this one.
  Command AddCommand(const std::string& name, const std::string& help);
  /// `name` is "--long", "-s,--long", or a word without dashes for an argument. `*target` holds the
  /// default, is set by Parse and outlives the CommandLine. T: std::string, std::filesystem::path,
  /// int, int64_t, uint64_t, double, or a vector of strings or paths.
  template <typename T>
  CommandOption AddOption(const std::string& name, T* target, const std::string& help = "");
  /// A flag sets `*target` to true. In "--on,!--off" the second flag sets it to false.
  CommandOption AddFlag(const std::string& name, bool* target, const std::string& help);
  /// All words behind the command, options too, go to `*rest`; the command then has no options.
  void TakesRest(std::vector<std::string>* rest);
  /// The text below the options in --help.
  void Footer(const std::string& text);
  /// Parse calls it if this command was chosen, once all targets are set. May throw an Error
  /// (kUsage).
  void OnChosen(std::function<void()> callback);

  std::string name() const;
  std::vector<Command> commands() const;
  std::vector<std::string> long_options() const;  ///< with their dashes

 protected:
  CLI::App* app_;
};

/// The command line of one program. The parser is CLI11, whose headers are slow to compile: only
/// command_line.cc includes them.
class CommandLine : public Command {
 public:
  CommandLine(const std::string& program, const std::string& description);
  ~CommandLine();

  /// --version prints `text`.
  void Version(const std::string& text);
  /// One of the commands must be given. Options of the program may also follow it.
  void NeedsCommand();

  /// Sets the targets. Returns false if --help or --version was given, after printing it. Throws
  /// Error (kUsage) that names the mistake and the command whose --help says more.
  bool Parse(int argc, char** argv);

  /// Parse for a program that answers a mistake only with a line on standard error. Returns the
  /// exit status with which the program must end, or -1 if it goes on.
  int ParseOrStatus(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> owned_;
};

}  // namespace evald
