#include "orchestrator/launch/command_launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/jsonl.h"
#include "base/program.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr std::chrono::seconds kCommandPatience{60};
constexpr int kMayHaveStarted = 75;  // EX_TEMPFAIL of sysexits.h
constexpr size_t kWordsShown = 500;
constexpr size_t kListValuesMax = 100;
constexpr size_t kIdBytesMax = 200;

ProgramCall CommandCall(const std::vector<std::string>& command,
                        const std::atomic<bool>* given_up) {
  ProgramCall call{command.at(0), {command.begin() + 1, command.end()}, kCommandPatience, ""};
  call.given_up = given_up;
  call.keeps_errors = true;
  return call;
}

bool IsId(const std::string& id) {
  return !id.empty() && id.size() <= kIdBytesMax &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return c > ' ' && c < 127; });
}

std::string ShellWords(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(ShellQuoted(word));
  return Join(quoted, " ");
}

std::string LastWordsOf(const ProgramResult& result) {
  std::string last;
  for (const std::string& line : Split(result.errors, '\n')) {
    if (!Trim(line).empty()) last = Trim(line);
  }
  return last.empty() ? fmt::format("exit status {}", result.status)
                      : PrintableLine(Shortened(last, kWordsShown));
}

ListedJob::State ParseState(const std::string& word, const std::string& where) {
  if (word == "pending") return ListedJob::State::kPending;
  if (word == "running") return ListedJob::State::kRunning;
  if (word == "over") return ListedJob::State::kOver;
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: key 'state': found '{}', expected pending, running or over", where,
                          PrintableLine(Shortened(word, 100))));
}

}  // namespace

SubmitAnswer CommandLauncher::Submit(const NodeJob& job, const std::string& join,
                                     const std::vector<std::string>& excluded) {
  using Outcome = SubmitAnswer::Outcome;
  ProgramCall call = CommandCall(settings_.start, given_up());
  call.environment = {{"EVALD_JOIN", join},
                      {"EVALD_JOB_NAME", job.name},
                      {"EVALD_EXCLUDED", Join(excluded, ",")},
                      {"EVALD", settings_.evald},
                      {"EVALD_AGENT_ARGUMENTS", ShellWords(settings_.agent)}};
  try {
    const ProgramResult result = RunProgram(call);
    const std::string id(Trim(Split(Trim(result.output), '\n')[0]));
    if (result.status == kMayHaveStarted) return {Outcome::kUnknown, "", LastWordsOf(result)};
    if (result.status != 0) return {Outcome::kRefused, "", LastWordsOf(result)};
    if (!IsId(id)) {
      return {Outcome::kUnknown, "",
              fmt::format("'start' wrote '{}', expected a job's id: up to {} printable characters "
                          "without blanks",
                          PrintableLine(Shortened(id, 60)), kIdBytesMax)};
    }
    return {Outcome::kAccepted, id, ""};
  } catch (const NotStarted& e) {
    return {Outcome::kRefused, "", e.what()};
  } catch (const Error& e) {
    return {Outcome::kUnknown, "", e.what()};
  }
}

std::vector<ListedJob> CommandLauncher::ParseList(const std::string& output,
                                                  const std::string& prefix) {
  std::vector<ListedJob> jobs;
  int number = 0;
  for (const std::string& line : Split(output, '\n')) {
    const std::string where = fmt::format("line {} of 'list'", ++number);
    if (Trim(line).empty()) continue;
    try {
      const Json json = ParseJson(line, where, kListValuesMax);
      ListedJob job;
      job.name = Field<std::string>(json, "name", where);
      if (!job.name.starts_with(prefix)) continue;
      job.job = Field<std::string>(json, "job", where);
      job.word = Field<std::string>(json, "state", where);
      job.state = ParseState(job.word, where);
      job.node = FieldOr<std::string>(json, "node", "", where);
      job.reason = FieldOr<std::string>(json, "reason", "", where);
      job.starts_at = FieldOr<double>(json, "starts_at", 0, where);
      job.ends_at = FieldOr<double>(json, "ends_at", 0, where);
      jobs.push_back(std::move(job));
    } catch (const Error& e) {
      throw Error(ErrorKind::kInfrastructure, e.message());
    }
  }
  return jobs;
}

std::vector<ListedJob> CommandLauncher::List() {
  ProgramCall call = CommandCall(settings_.list, given_up());
  call.environment = {{"EVALD_JOB_PREFIX", settings_.prefix}};
  const ProgramResult result = RunProgram(call);
  if (result.status != 0) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{} fails: {}", settings_.list[0], LastWordsOf(result)));
  }
  if (result.output.size() >= kProgramOutputMax) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{} writes more than 1 MiB", settings_.list[0]),
                "list only jobs whose names begin with EVALD_JOB_PREFIX");
  }
  return ParseList(result.output, settings_.prefix);
}

void CommandLauncher::Stop(const NodeJob& job) {
  const ProgramResult result = RunProgram(StopCall(job));
  if (result.status != 0) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{} fails: {}", settings_.stop[0], LastWordsOf(result)));
  }
}

ProgramCall CommandLauncher::StopCall(const NodeJob& job) const {
  ProgramCall call = CommandCall(settings_.stop, given_up());
  call.environment = {{"EVALD_JOB", job.job}, {"EVALD_JOB_NAME", job.name}};
  return call;
}

std::string CommandLauncher::HowToStop(const std::vector<std::string>& names) const {
  return fmt::format("`{}` ends {}, with each name in the variable EVALD_JOB_NAME",
                     PrintableLine(Join(settings_.stop, " ")), names.size() == 1 ? "it" : "them");
}

std::string CommandLauncher::LogEnd(const NodeJob& job) {
  if (settings_.log.empty()) return "";
  ProgramCall call = CommandCall(settings_.log, given_up());
  call.environment = {{"EVALD_JOB", job.job}, {"EVALD_JOB_NAME", job.name}};
  const ProgramResult result = RunProgram(call);
  return PrintableLine(Shortened(Trim(result.output), kWordsShown));
}

}  // namespace evald
