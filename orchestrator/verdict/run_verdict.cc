#include "orchestrator/verdict/run_verdict.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "base/print.h"
#include "orchestrator/verdict/examples.h"
#include "orchestrator/verdict/reports.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

void WriteReport(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  if (fs::exists(file) &&
      !fs::is_regular_file(file)) {  // /dev/stdout, a pipe: not to be renamed over
    std::ofstream out(file, std::ios::app | std::ios::binary);
    if (!(out << text).flush()) ThrowErrno(file, "write", errno);
    return;
  }
  const fs::path path = fs::weakly_canonical(fs::absolute(file));
  MakeDirectories(path.parent_path());
  WriteFileAtomic(path, text);
}

// The step's summary may hold what earlier commands of the step wrote.
void AppendSummary(const std::string& text) {
  const char* file = std::getenv("GITHUB_STEP_SUMMARY");
  if (file == nullptr || file[0] == '\0') return;
  std::ofstream out(file, std::ios::app | std::ios::binary);
  out << text;
  if (!out.flush()) Print(stderr, "evald: warning: {}: cannot append the summary\n", file);
}

}  // namespace

bool InGithubActions() {
  const char* value = std::getenv("GITHUB_ACTIONS");
  return value != nullptr && std::string_view(value) == "true";
}

RunVerdict::RunVerdict(const VerdictOptions& options, const GatePolicy& policy, const ReadRoots& roots)
    : options_(options), policy_(policy) {
  if (!options.gates.empty()) policy_ = ReadGatesFile(options.gates);
  const fs::path baseline =
      options.baseline.empty() ? policy_.baseline : fs::path(options.baseline);
  if (baseline.empty()) return;
  try {
    baseline_ = ResultSet::Open(baseline, roots);
  } catch (Error& e) {
    throw Error(ErrorKind::kInput, "baseline: " + e.message(), e.remedy());
  }
}

Verdict RunVerdict::Finish(const Json& results, const fs::path& folder, ExitStatus run_status,
                           const std::vector<std::string>& problems) {
  ResultSet candidate(results, folder);
  return Report(&candidate, run_status, problems,
                run_status == ExitStatus::kDone ? folder : fs::path());
}

Verdict RunVerdict::Finish(ResultSet* candidate) {
  return Report(candidate, ExitStatus::kDone, {}, {});
}

Verdict RunVerdict::Report(ResultSet* candidate, ExitStatus run_status,
                           const std::vector<std::string>& problems, const fs::path& folder) {
  Verdict verdict = Judge(policy_, candidate, baseline(), run_status, problems);
  const std::string markdown = VerdictMarkdown(verdict, candidate->results());
  WriteReport(options_.junit, VerdictJunit(verdict));
  WriteReport(options_.markdown, markdown);
  if (!options_.html.empty() || !folder.empty()) {
    const std::string page =
        VerdictHtml(verdict, candidate->results(), WrongAnswers(candidate, baseline()));
    WriteReport(options_.html, page);
    if (!folder.empty()) WriteFileAtomic(folder / "report.html", page);
  }
  if (!folder.empty() && !verdict.gates.empty())
    WriteFileAtomic(folder / "verdict.json", ToJson(verdict).dump(2) + "\n");
  if (InGithubActions()) AppendSummary(markdown);
  return verdict;
}

}  // namespace evald
