#include "orchestrator/launch/slurm_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "evald/error.h"

namespace evald::slurm {
namespace {

constexpr size_t kFields = 7;  // of kListFormat

// The fields of a line; the last one may hold the separator.
std::vector<std::string> FieldsOf(const std::string& line) {
  std::vector<std::string> fields;
  size_t begin = 0;
  while (fields.size() + 1 < kFields) {
    const size_t bar = line.find('|', begin);
    if (bar == std::string::npos) break;
    fields.push_back(line.substr(begin, bar - begin));
    begin = bar + 1;
  }
  fields.push_back(line.substr(begin));
  return fields;
}

// Seconds since 1970; 0 for "N/A" and the like.
double TimeOf(const std::string& text) {
  int64_t seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return read.ec == std::errc() && read.ptr == text.data() + text.size()
             ? static_cast<double>(seconds)
             : 0;
}

bool Holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

ListedJob::State StateOf(std::string_view word) {
  // Job state codes of squeue(1).
  for (const char* waits :
       {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"}) {
    if (word == waits) return ListedJob::State::kPending;
  }
  for (const char* runs :
       {"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT"}) {
    if (word == runs) return ListedJob::State::kRunning;
  }
  return ListedJob::State::kOver;
}

std::vector<ListedJob> ParseList(std::string_view output, std::string_view prefix) {
  std::vector<ListedJob> jobs;
  for (const std::string& line : Split(output, '\n')) {
    const std::vector<std::string> fields = FieldsOf(line);
    if (fields.size() < 2 || !fields[1].starts_with(prefix)) continue;
    if (fields.size() != kFields) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("squeue: expected {} fields, found '{}'", kFields,
                              PrintableLine(Shortened(line, 200))));
    }
    ListedJob job{.job = fields[0], .name = fields[1], .state = StateOf(fields[2])};
    job.word = fields[2];
    if (job.state != ListedJob::State::kPending) job.node = fields[3];
    job.starts_at = TimeOf(fields[4]);
    job.ends_at = TimeOf(fields[5]);
    if (fields[6] != "None") job.reason = fields[6];
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::string CauseIn(std::string_view errors) {
  std::vector<std::string> causes;
  for (const std::string& line : Split(errors, '\n')) {
    std::string cause(Trim(line));
    for (const char* prefix : {"sbatch: ", "squeue: ", "scancel: ", "error: ", "fatal: ",
                               "Batch job submission failed: "}) {
      if (cause.starts_with(prefix)) cause.erase(0, std::string_view(prefix).size());
    }
    const bool hint = cause.starts_with("Try \"");  // Try "sbatch --help" for more information
    const bool seen = std::find(causes.begin(), causes.end(), cause) != causes.end();
    if (!cause.empty() && !hint && !seen) causes.push_back(std::move(cause));
  }
  return PrintableLine(Shortened(Join(causes, "; "), 500));
}

SubmitAnswer FailedSubmission(std::string_view errors) {
  using Outcome = SubmitAnswer::Outcome;
  // Texts of slurm_errno: the request went out, or may have gone out, and no answer came.
  for (const char* open : {"timed out", "send failure", "receive failure", "shutdown failure",
                           "send/recv", "Zero Bytes", "Unexpected message"}) {
    if (Holds(errors, open)) return {Outcome::kUnknown, "", CauseIn(errors)};
  }
  return {Outcome::kRefused, "", CauseIn(errors)};
}

std::string Minutes(double seconds) {
  return std::to_string(static_cast<int64_t>(std::max(1.0, std::ceil(seconds / 60))));
}

double SecondsOf(std::string_view duration) {
  double days = 0, seconds = 0;
  if (const size_t dash = duration.find('-'); dash != std::string_view::npos) {
    days = TimeOf(std::string(duration.substr(0, dash)));
    duration.remove_prefix(dash + 1);
  }
  for (const std::string& part : Split(duration, ':')) {
    if (part.empty() || !std::all_of(part.begin(), part.end(), ::isdigit)) return -1;
    seconds = 60 * seconds + TimeOf(part);
  }
  return days * 86400 + seconds;
}

}  // namespace evald::slurm
