#include "orchestrator/config/launcher_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "evald/error.h"
#include "orchestrator/config/sections.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

constexpr double kDay_s = 86400;
constexpr double kYear_s = 366 * kDay_s;

// Options of sbatch that evald sets, or that would make something else than one agent of one node.
constexpr const char* kOwnOptions[] = {
    "--job-name", "--nodes", "--ntasks",    "--output",    "--error",   "--input",
    "--export",   "--array", "--wrap",      "--parsable",  "--chdir",   "--signal",
    "--wait",     "--hold",  "--test-only", "--open-mode", "--exclude", "--time",
    "--help",     "--usage", "--version",   "--partition", "--comment", "--export-file"};

// Options of an agent that evald gives itself, with the variable EVALD_JOIN or in its place.
constexpr const char* kOwnAgentOptions[] = {"--server", "--token-file", "--ca", "--name",
                                            "--socket"};

std::string WrongWithAgent(const std::string& argument) {
  for (const char* own : kOwnAgentOptions) {
    if (argument == own || argument.starts_with(std::string(own) + "="))
      return fmt::format("'{}': evald sets {} itself", argument, own);
  }
  return "";
}

bool IsLauncherName(const std::string& name) {
  return !name.empty() && name.size() <= 20 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

void ReadNodes(YamlSection& section, LauncherConfig* launcher) {
  auto nodes = section.Section("nodes");
  if (!nodes) section.RefuseAbsent("nodes", "absent, expected {min: 0, max: <nodes>}");
  launcher->nodes_min = static_cast<int>(nodes->Integer("min", 0, 10'000).value_or(0));
  const auto max = nodes->Integer("max", 1, 10'000);
  if (!max) nodes->RefuseAbsent("max", "absent, expected the largest number of nodes");
  launcher->nodes_max = static_cast<int>(*max);
  if (launcher->nodes_min > launcher->nodes_max) {
    nodes->Refuse("min", fmt::format("found {}, expected at most 'max', {}", launcher->nodes_min,
                                     launcher->nodes_max));
  }
  nodes->Finish();
}

void ReadSeconds(YamlSection& section, const char* key, double low, double high, double* value) {
  *value = section.Duration(key, low, high).value_or(*value);
}

// The keys that only a service's launcher has: its nodes come and go.
void ReadBounds(YamlSection& section, LauncherConfig* launcher) {
  launcher->name = section.String("name").value_or(launcher->kind);
  if (!IsLauncherName(launcher->name)) {
    section.Refuse("name", fmt::format("found '{}', expected up to 20 letters, digits and '_'",
                                       launcher->name));
  }
  ReadNodes(section, launcher);
  launcher->pending_max =
      static_cast<int>(section.Integer("pending", 1, 10'000).value_or(launcher->pending_max));
  launcher->node_hours_per_day =
      section.Number("node_hours_per_day", 0.01, 1e6).value_or(launcher->node_hours_per_day);
  ReadSeconds(section, "idle", 0, kDay_s, &launcher->idle_s);
  ReadSeconds(section, "startup", 0, kDay_s, &launcher->startup_s);
  ReadSeconds(section, "worth", 0, kDay_s, &launcher->worth_s);
}

void ReadJobs(YamlSection& section, const fs::path& file, LauncherConfig* launcher) {
  launcher->gpus_per_node = static_cast<int>(section.Integer("gpus_per_node", 0, 64).value_or(0));
  ReadSeconds(section, "agent_within", 1, kDay_s, &launcher->agent_s);
  ReadSeconds(section, "poll", 1, 3600, &launcher->poll_s);
  ReadSeconds(section, "retry", 1, 1800, &launcher->retry_s);
  launcher->agent = section.Strings("agent");
  for (const std::string& argument : launcher->agent) {
    if (const std::string wrong = WrongWithAgent(argument); !wrong.empty())
      section.Refuse("agent", wrong);
  }
  if (const auto evald = section.String("evald")) launcher->evald = ResolvePath(file, *evald);
}

void ReadSlurm(YamlSection& section, const fs::path& file, LauncherConfig* launcher) {
  launcher->partition = section.String("partition").value_or("");
  launcher->cpus_per_node = static_cast<int>(section.Integer("cpus_per_node", 0, 4096).value_or(0));
  launcher->time_s = section.Duration("time", 60, kYear_s, YamlSection::Unit::kNeeded).value_or(0);
  launcher->warning_s = section.Duration("warning", 10, 3600).value_or(launcher->warning_s);
  if (const auto logs = section.String("logs")) launcher->logs = ResolvePath(file, *logs);
  launcher->sbatch = section.Strings("sbatch");
  for (const std::string& argument : launcher->sbatch) {
    if (const std::string wrong = WrongWithSbatch(argument); !wrong.empty())
      section.Refuse("sbatch", wrong);
  }
}

std::vector<std::string> ReadProgram(YamlSection& section, const char* key, const fs::path& file,
                                     bool needed) {
  std::vector<std::string> program = section.Strings(key);
  if (program.empty() && needed)
    section.RefuseAbsent(key, "absent, expected a program and its arguments");
  if (!program.empty() && program[0].find('/') != std::string::npos)
    program[0] = ResolvePath(file, program[0]).string();
  return program;
}

LauncherConfig ReadLauncher(YamlSection& entry, const fs::path& file, bool of_run) {
  LauncherConfig launcher;
  auto slurm = entry.Section("slurm"), command = entry.Section("command");
  if (slurm.has_value() == command.has_value())
    entry.Refuse("slurm", "expected one of 'slurm' and 'command'");
  launcher.kind = slurm ? "slurm" : "command";
  YamlSection& section = slurm ? *slurm : *command;
  if (of_run) {
    launcher.name = launcher.kind;
    SetNodes(&launcher, static_cast<int>(section.Integer("nodes", 1, 10'000).value_or(1)));
  } else {
    ReadBounds(section, &launcher);
  }
  ReadJobs(section, file, &launcher);
  if (slurm) {
    ReadSlurm(section, file, &launcher);
  } else {
    launcher.start = ReadProgram(section, "start", file, true);
    launcher.stop = ReadProgram(section, "stop", file, true);
    launcher.list = ReadProgram(section, "list", file, true);
    launcher.log = ReadProgram(section, "log", file, false);
  }
  section.Finish();
  entry.Finish();
  return launcher;
}

}  // namespace

// sbatch takes the beginning of an option's name for the whole name.
std::string WrongWithSbatch(const std::string& argument) {
  if (!argument.starts_with("--") || argument.size() < 4) {
    return fmt::format("found '{}', expected a long option with its value, such as --account=llm",
                       argument);
  }
  const std::string option = argument.substr(0, argument.find('='));
  for (const std::string own : kOwnOptions) {
    if (own.starts_with(option))
      return fmt::format(
          "found '{}', but evald sets {} itself; some of these have keys of their "
          "own (docs/slurm.md)",
          argument, own);
  }
  return "";
}

void SetNodes(LauncherConfig* launcher, int nodes) {
  launcher->nodes_min = launcher->nodes_max = launcher->pending_max = nodes;
}

LauncherConfig RunLauncherOf(const std::string& kind) {
  if (kind != "slurm") {
    throw Error(ErrorKind::kUsage,
                fmt::format("--launcher '{}': expected slurm, or 'launcher' in eval.yaml", kind));
  }
  LauncherConfig launcher;
  launcher.kind = launcher.name = kind;
  SetNodes(&launcher, 1);
  return launcher;
}

std::optional<LauncherConfig> ReadRunLauncher(YamlSection& top, const fs::path& file) {
  auto entry = top.Section("launcher");
  if (!entry) return std::nullopt;
  return ReadLauncher(*entry, file, true);
}

std::vector<LauncherConfig> ReadLaunchers(YamlSection& top, const fs::path& file) {
  std::vector<LauncherConfig> launchers;
  std::set<std::string> names;
  for (YamlSection& entry : top.Sections("launchers")) {
    top.Try([&] {
      LauncherConfig launcher = ReadLauncher(entry, file, false);
      if (!names.insert(launcher.name).second) {
        top.Refuse("launchers",
                   fmt::format("two launchers are called '{}', expected another 'name' for each",
                               launcher.name));
      }
      launchers.push_back(std::move(launcher));
    });
  }
  return launchers;
}

}  // namespace evald
