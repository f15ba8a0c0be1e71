#include "base/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iostream>

#include "base/print.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// "evald run": the program and the part of the command that was understood.
std::string ChosenCommand(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app.get_name() : app.get_name() + " " + chosen[0]->get_name();
}

// The options that the chosen command takes, as they are typed: --limit, -q.
std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command = &app; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
  }
  return names;
}

std::string UnknownOption(const CLI::App& command, const std::string& typed) {
  const std::string name = typed.substr(0, typed.find('='));
  return fmt::format("unknown option '{}'{}", name, Suggestion(name, OptionsOf(command)));
}

// The words that were not understood: the first option among them, with the nearest that there is,
// else the first word.
std::string NotUnderstood(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen[0];
  const auto option = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with("-") && word.size() > 1;
  });
  if (option != words.end()) return UnknownOption(command, *option);
  return fmt::format("unexpected argument '{}'", words.back());
}

// The message for a mistake. The parser asks for a command even if a misspelt one is there. Its
// list of words that are left over is in another order than they were typed in.
std::string Mistake(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> unknown = app.remaining(true);
  const bool chosen = !app.get_subcommands().empty() || app.get_require_subcommand_min() == 0;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !unknown.empty())
    return NotUnderstood(app, unknown);
  const std::string words = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return words.substr(0, words.find(':')) + ": expected a value after it";
  if (chosen) return words;
  if (unknown.empty()) return "no command is given, expected one such as run";
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (unknown[0].starts_with("-")) return UnknownOption(app, unknown[0]);
  return fmt::format("unknown command '{}'{}", unknown[0], Suggestion(unknown[0], commands));
}

// Checks that a path is there, which may also be one that may not be looked at.
CLI::Validator Existing(const std::string& what, bool (*there)(const fs::path&)) {
  return CLI::Validator(
      [what, there](std::string& path) {
        try {
          if (there(path)) return std::string();
        } catch (const fs::filesystem_error&) {
        }
        return fmt::format("there is no {} '{}'", what, PrintableLine(path));
      },
      "");
}

Error WithHelp(const CLI::App& app, const std::string& mistake) {
  return Error(ErrorKind::kUsage, mistake, fmt::format("see '{} --help'", ChosenCommand(app)));
}

}  // namespace

CommandOption CommandOption::Required() {
  option_->required();
  return *this;
}

CommandOption CommandOption::ExistingFile() {
  option_->check(Existing(
      "file", [](const fs::path& path) { return fs::exists(path) && !fs::is_directory(path); }));
  return *this;
}

CommandOption CommandOption::ExistingFolder() {
  option_->check(Existing("folder", [](const fs::path& path) { return fs::is_directory(path); }));
  return *this;
}

CommandOption CommandOption::ExistingPath() {
  option_->check(Existing("file or folder", [](const fs::path& path) { return fs::exists(path); }));
  return *this;
}

CommandOption CommandOption::Within(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

CommandOption CommandOption::Within(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

CommandOption CommandOption::Positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

CommandOption CommandOption::NonNegative() {
  option_->check(
      CLI::Validator(  // CLI::NonNegativeNumber takes NaN, and says all digits of numbers
          [](std::string& found) {
            double value = -1;
            const char* const end = found.data() + found.size();
            const auto read = std::from_chars(found.data(), end, value);
            const bool good = read.ec == std::errc() && read.ptr == end && value >= 0;
            return good ? "" : fmt::format("found '{}', expected a number of at least 0", found);
          },
          "NONNEGATIVE"));
  return *this;
}

CommandOption CommandOption::OneOf(const std::vector<std::string>& words) {
  option_->check(CLI::Validator(
      [words](std::string& found) {
        if (std::find(words.begin(), words.end(), found) != words.end()) return std::string();
        return fmt::format("found '{}', expected one of {}{}", found, Join(words, ", "),
                           Suggestion(found, words));
      },
      ""));
  return *this;
}

CommandOption CommandOption::Metavar(const std::string& name) {
  option_->type_name(name);
  return *this;
}

CommandOption CommandOption::Group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

CommandOption CommandOption::Environment(const std::string& variable) {
  option_->envname(variable);
  return *this;
}

CommandOption CommandOption::CommaSeparated() {
  option_->delimiter(',');
  return *this;
}

CommandOption CommandOption::OneArgument() {
  option_->allow_extra_args(false);
  return *this;
}

CommandOption CommandOption::ValueOptional() {
  option_->expected(0, 1);
  return *this;
}

bool CommandOption::given() const { return option_->count() > 0; }

std::string CommandOption::name() const { return option_->get_name(); }

Command Command::AddCommand(const std::string& name, const std::string& help) {
  return Command(app_->add_subcommand(name, help));
}

template <typename T>
CommandOption Command::AddOption(const std::string& name, T* target, const std::string& help) {
  return CommandOption(app_->add_option(name, *target, help));
}

template CommandOption Command::AddOption(const std::string&, std::string*, const std::string&);
template CommandOption Command::AddOption(const std::string&, std::filesystem::path*,
                                          const std::string&);
template CommandOption Command::AddOption(const std::string&, int*, const std::string&);
template CommandOption Command::AddOption(const std::string&, int64_t*, const std::string&);
template CommandOption Command::AddOption(const std::string&, uint64_t*, const std::string&);
template CommandOption Command::AddOption(const std::string&, double*, const std::string&);
template CommandOption Command::AddOption(const std::string&, std::vector<std::string>*,
                                          const std::string&);
template CommandOption Command::AddOption(const std::string&, std::vector<std::filesystem::path>*,
                                          const std::string&);

CommandOption Command::AddFlag(const std::string& name, bool* target, const std::string& help) {
  return CommandOption(app_->add_flag(name, *target, help));
}

void Command::TakesRest(std::vector<std::string>* rest) {
  app_->prefix_command();
  app_->fallthrough(false);  // the program's own options stand before the command
  app_->parse_complete_callback([app = app_, rest] { *rest = app->remaining(); });
}

void Command::Footer(const std::string& text) { app_->footer(text); }

void Command::OnChosen(std::function<void()> callback) { app_->callback(std::move(callback)); }

std::string Command::name() const { return app_->get_name(); }

std::vector<Command> Command::commands() const {
  std::vector<Command> commands;
  for (CLI::App* command : app_->get_subcommands({})) commands.emplace_back(command);
  return commands;
}

std::vector<std::string> Command::long_options() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

CommandLine::CommandLine(const std::string& program, const std::string& description)
    : Command(nullptr), owned_(std::make_unique<CLI::App>(description, program)) {
  app_ = owned_.get();
}

CommandLine::~CommandLine() = default;

void CommandLine::Version(const std::string& text) { app_->set_version_flag("--version", text); }

void CommandLine::NeedsCommand() {
  app_->require_subcommand(1);
  app_->fallthrough();
}

bool CommandLine::Parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0) throw WithHelp(*app_, Mistake(*app_, e));
    app_->exit(e);  // prints the text for --help or --version
    std::cout.flush();
    return false;
  } catch (const Error& e) {
    if (!e.remedy().empty()) throw;
    throw WithHelp(*app_, e.message());
  }
}

int CommandLine::ParseOrStatus(int argc, char** argv) {
  try {
    return Parse(argc, argv) ? -1 : static_cast<int>(ExitStatus::kDone);
  } catch (const Error& e) {
    Print(stderr, "{}: error: {}\n", name(), e.what());
    return static_cast<int>(ExitStatusFor(e.kind()));
  }
}

}  // namespace evald
