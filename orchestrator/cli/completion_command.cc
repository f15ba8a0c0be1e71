#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "orchestrator/cli/cli.h"

namespace evald::cli {
namespace {

// Names and options of every command, from the command line's own definition.
struct Words {
  std::vector<std::string> commands;
  // By command; "" for all commands
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  std::vector<std::pair<std::string, std::vector<std::string>>> below;  ///< commands of a command
};

Words Collect(const Command& app) {
  Words words;
  words.options.emplace_back("", app.long_options());
  for (const Command& command : app.commands()) {
    words.commands.push_back(command.name());
    std::vector<std::string> options = command.long_options(), below;
    for (const Command& inner : command.commands()) {
      below.push_back(inner.name());
      for (std::string& option : inner.long_options()) {
        if (std::find(options.begin(), options.end(), option) == options.end())
          options.push_back(std::move(option));
      }
    }
    words.options.emplace_back(command.name(), std::move(options));
    if (!below.empty()) words.below.emplace_back(command.name(), std::move(below));
  }
  return words;
}

std::string Bash(const Words& words) {
  std::string script =
      "_evald() {\n  local current=\"${COMP_WORDS[COMP_CWORD]}\" command=\"\" below=\"\" word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case \"$word\" in " +
      Join(words.commands, "|") +
      ") command=\"$word\"; break;; esac\n  done\n"
      "  local options=\"" +
      Join(words.options[0].second, " ") + "\"\n  case \"$command\" in\n";
  script += "    '') COMPREPLY=($(compgen -W \"" + Join(words.commands, " ") +
            " $options\" -- \"$current\")); return;;\n";
  for (size_t i = 1; i < words.options.size(); ++i) {
    script += fmt::format("    {}) options=\"$options {}\";;\n", words.options[i].first,
                          Join(words.options[i].second, " "));
  }
  script += "  esac\n  case \"$command\" in\n";
  for (const auto& [command, below] : words.below)
    script += fmt::format("    {}) below=\"{}\";;\n", command, Join(below, " "));
  return script +
         "  esac\n  if [[ $current == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- "
         "\"$current\"))\n"
         "  else COMPREPLY=($(compgen -f -W \"$below\" -- \"$current\")); fi\n}\ncomplete -o "
         "filenames -F _evald "
         "evald\n";
}

std::string Zsh(const Words& words) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + Bash(words);
}

std::string Fish(const Words& words) {
  std::string script;
  for (const std::string& command : words.commands) {
    script += fmt::format("complete -c evald -n __fish_use_subcommand -a {}\n", command);
  }
  for (const auto& [command, below] : words.below) {
    script += fmt::format("complete -c evald -n '__fish_seen_subcommand_from {}' -a '{}'\n",
                          command, Join(below, " "));
  }
  for (const auto& [command, options] : words.options) {
    for (const std::string& option : options) {
      const std::string when =
          command.empty() ? "" : fmt::format(" -n '__fish_seen_subcommand_from {}'", command);
      script += fmt::format("complete -c evald{} -l {}\n", when, option.substr(2));
    }
  }
  return script;
}

}  // namespace

void AddCompletion(Command app, const Common*, Action* action) {
  auto shell = std::make_shared<std::string>();
  Command command = app.AddCommand("completion", "Print a shell's completion script");
  command.AddOption("shell", shell.get(), "bash, zsh or fish")
      .Required()
      .OneOf({"bash", "zsh", "fish"});
  command.Footer(
      "\nExample:\n  evald completion bash > ~/.local/share/bash-completion/completions/evald");
  command.OnChosen([=] {
    *action = [=] {
      const Words words = Collect(app);
      fmt::print("{}", *shell == "bash" ? Bash(words) : *shell == "zsh" ? Zsh(words) : Fish(words));
      return ExitStatus::kDone;
    };
  });
}

}  // namespace evald::cli
