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

/// One option, flag or argument of a command: a handle that may be copied, valid as long as the
/// CommandLine. Each method that says something of the option returns the handle again.
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
  /// The heading in --help under which the option stands; "" hides the option.
  CommandOption Group(const std::string& heading);
  /// The environment variable that holds the value where the option is not given.
  CommandOption Environment(const std::string& variable);
  /// One argument may hold several values with commas between them.
  CommandOption CommaSeparated();
  /// An option for a list takes one argument each time it is given; without this, all up to the
  /// next option.
  CommandOption OneArgument();
  /// The option may be given without a value.
  CommandOption ValueOptional();

  bool given() const;        ///< after CommandLine::Parse
  std::string name() const;  ///< for example --limit

 private:
  CLI::Option* option_;
};

/// A command with its options: a handle that may be copied, valid as long as the CommandLine.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  /// A command below this one.
  Command AddCommand(const std::string& name, const std::string& help);
  /// `name` is "--long", "-s,--long", or a word without dashes for an argument. `*target` holds the
  /// default, is set by Parse and outlives it. T: std::string, std::filesystem::path, int, int64_t,
  /// uint64_t, double, or a vector of strings or paths.
  template <typename T>
  CommandOption AddOption(const std::string& name, T* target, const std::string& help = "");
  /// A flag sets `*target` to true. "--on,!--off" has a flag that sets it to false besides.
  CommandOption AddFlag(const std::string& name, bool* target, const std::string& help);
  /// The text below the options in --help.
  void Footer(const std::string& text);
  /// Called by Parse where this command was chosen, once all targets are set. May throw an Error
  /// (kUsage).
  void OnChosen(std::function<void()> callback);

  std::string name() const;
  std::vector<Command> commands() const;
  std::vector<std::string> long_options() const;  ///< with their dashes

 protected:
  CLI::App* app_;
};

/// The command line of one program; the parser is CLI11, whose headers are costly to compile and
/// are included by command_line.cc alone.
class CommandLine : public Command {
 public:
  CommandLine(const std::string& program, const std::string& description);
  ~CommandLine();

  /// --version prints `text`.
  void Version(const std::string& text);
  /// One of the commands must be given; options of the program may stand behind it as well.
  void NeedsCommand();

  /// Sets the targets. Returns false where --help or --version was asked for, which has been
  /// printed. Throws Error (kUsage) that names the mistake and the command whose --help says more.
  bool Parse(int argc, char** argv);

  /// Parse for a program whose only answer to a mistake is a line on standard error: returns the
  /// exit status with which the program ends, or -1 where it goes on.
  int ParseOrStatus(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> owned_;
};

}  // namespace evald
