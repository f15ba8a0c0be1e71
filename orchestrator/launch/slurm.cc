#include "orchestrator/launch/slurm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/last_lines.h"
#include "base/program.h"
#include "base/text.h"
#include "evald/error.h"
#include "orchestrator/launch/slurm_text.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

// slurmctld may be busy. Slurm's programs give up by themselves after MessageTimeout, by default
// 10 s, and a few tries.
constexpr std::chrono::seconds kPatience{60};
constexpr size_t kLogLinesShown = 3;
constexpr size_t kLogLineBytes = 500;

// Variables of the service that its jobs get. Others, such as keys, stay here.
constexpr const char* kPassedOn[] = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "SLURM_CONF"};

std::string UserId() { return std::to_string(::getuid()); }

// A call of a program of Slurm. The program does not see the service's variables: SBATCH_PARTITION,
// SQUEUE_ACCOUNT or SCANCEL_INTERACTIVE would change what the service asks for.
ProgramCall CallOf(const char* program, std::vector<std::string> arguments,
                   const std::atomic<bool>* given_up) {
  ProgramCall call{program, std::move(arguments), kPatience, ""};
  call.given_up = given_up;
  call.keeps_errors = true;
  call.clears_environment = true;
  for (const char* name : kPassedOn) {
    if (const char* value = std::getenv(name)) call.environment[name] = value;
  }
  return call;
}

[[noreturn]] void ThrowFailed(const char* program, const ProgramResult& result) {
  const std::string cause = slurm::CauseIn(result.errors);
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{} fails: {}", program,
                          cause.empty() ? fmt::format("exit status {}", result.status) : cause));
}

}  // namespace

std::vector<std::string> SlurmLauncher::SubmitArguments(
    const NodeJob& job, const std::vector<std::string>& excluded) const {
  std::vector<std::string> arguments = {"--parsable",
                                        "--job-name=" + job.name,
                                        "--comment=an agent of evald",
                                        "--nodes=1",
                                        "--ntasks=1",
                                        "--export=ALL",
                                        "--open-mode=append",
                                        "--input=/dev/null",
                                        "--output=" + LogOf(job).string(),
                                        "--chdir=/"};
  const auto add = [&](bool wanted, const std::string& argument) {
    if (wanted) arguments.push_back(argument);
  };
  add(!settings_.partition.empty(), "--partition=" + settings_.partition);
  add(settings_.gpus_per_node > 0, fmt::format("--gpus-per-node={}", settings_.gpus_per_node));
  add(settings_.cpus_per_node > 0, fmt::format("--cpus-per-task={}", settings_.cpus_per_node));
  add(settings_.time_s > 0, "--time=" + slurm::Minutes(settings_.time_s));
  add(settings_.warning_s > 0, fmt::format("--signal=B:TERM@{:.0f}", settings_.warning_s));
  add(!excluded.empty(), "--exclude=" + Join(excluded, ","));
  arguments.insert(arguments.end(), settings_.more.begin(), settings_.more.end());
  return arguments;
}

// The agent takes the place of the shell, so that Slurm's signals reach it.
std::string SlurmLauncher::Script() const {
  std::string script =
      fmt::format("#!/bin/sh\nexec {} agent", ShellQuoted(settings_.evald.string()));
  for (const std::string& argument : settings_.agent) script += " " + ShellQuoted(argument);
  return script + "\n";
}

SubmitAnswer SlurmLauncher::Submit(const NodeJob& job, const std::string& join,
                                   const std::vector<std::string>& excluded) {
  ProgramCall call = CallOf("sbatch", SubmitArguments(job, excluded), given_up());
  call.input = Script();
  call.environment["EVALD_JOIN"] = join;
  try {
    const ProgramResult result = RunProgram(call);
    // "4711", or "4711;cluster"
    const std::string id = Split(Trim(result.output), ';')[0];
    const bool number = !id.empty() && id.find_first_not_of("0123456789") == std::string::npos;
    if (result.status == 0 && number) return {SubmitAnswer::Outcome::kAccepted, id, ""};
    if (result.status == 0) {
      return {SubmitAnswer::Outcome::kUnknown, "",
              fmt::format("sbatch wrote '{}', expected a job's id",
                          PrintableLine(Shortened(id, kLogLineBytes)))};
    }
    return slurm::FailedSubmission(result.errors);
  } catch (const NotStarted& e) {
    return {SubmitAnswer::Outcome::kRefused, "", e.what()};
  } catch (const Error& e) {
    return {SubmitAnswer::Outcome::kUnknown, "", e.what()};
  }
}

std::vector<ListedJob> SlurmLauncher::List() {
  ProgramCall call = CallOf("squeue",
                            {"--noheader", "--states=all", "--user=" + UserId(),
                             std::string("--format=") + slurm::kListFormat},
                            given_up());
  call.environment["SLURM_TIME_FORMAT"] = "%s";
  const ProgramResult result = RunProgram(call);
  if (result.status != 0) ThrowFailed("squeue", result);
  return slurm::ParseList(result.output, settings_.prefix, WallSeconds());
}

void SlurmLauncher::Stop(const NodeJob& job) {
  const ProgramResult result = RunProgram(StopCall(job));
  const bool gone = result.errors.find("Invalid job id") != std::string::npos;
  if (result.status != 0 && !gone) ThrowFailed("scancel", result);
}

void SlurmLauncher::Exclude(const NodeJob& job, const std::vector<std::string>& excluded) {
  const ProgramResult result = RunProgram(
      CallOf("scontrol", {"update", "JobId=" + job.job, "ExcNodeList=" + Join(excluded, ",")},
             given_up()));
  const auto says = [&](const char* what) { return result.errors.find(what) != std::string::npos; };
  const bool waits_no_more =
      says("no longer pending") || says("already finished") || says("Invalid job id");
  if (result.status != 0 && !waits_no_more) ThrowFailed("scontrol", result);
}

ProgramCall SlurmLauncher::StopCall(const NodeJob& job) const {
  return CallOf("scancel", {"--user=" + UserId(), job.job.empty() ? "--name=" + job.name : job.job},
                given_up());
}

std::string SlurmLauncher::HowToStop(const std::vector<std::string>& names) const {
  return fmt::format("`scancel --name={}` ends {}", Join(names, ","),
                     names.size() == 1 ? "it" : "them");
}

fs::path SlurmLauncher::LogOf(const NodeJob& job) const {
  return settings_.logs / (job.name + ".log");
}

std::string SlurmLauncher::LogEnd(const NodeJob& job) {
  std::vector<std::string> lines = LastLines(LogOf(job), kLogLinesShown);
  if (lines.empty())
    return fmt::format("(nothing: can the node write to {}?)", settings_.logs.string());
  for (std::string& line : lines) line = PrintableLine(Shortened(Trim(line), kLogLineBytes));
  return Join(lines, " / ");
}

}  // namespace evald
