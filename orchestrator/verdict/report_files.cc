#include "orchestrator/verdict/report_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "base/print.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

void WriteReport(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  const fs::path path = fs::absolute(file);
  MakeDirectories(path.parent_path());
  WriteOutput(path, text);
}

// Appends to the step's summary, which may hold text of earlier commands of the step.
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

GatePolicy PolicyOf(const VerdictOptions& options, const GatePolicy& policy) {
  GatePolicy chosen = options.gates.empty() ? policy : ReadGatesFile(options.gates);
  if (!options.baseline.empty()) {
    chosen.baseline = options.baseline;
    chosen.baseline_place = "--baseline";
  }
  return chosen;
}

void WriteReports(const VerdictOptions& options, const Judgement& judgement,
                  const fs::path& folder) {
  WriteReport(options.junit, judgement.junit);
  WriteReport(options.markdown, judgement.markdown);
  WriteReport(options.html, judgement.page);
  if (!folder.empty() && !judgement.page.empty())
    WriteFileAtomic(folder / "report.html", judgement.page);
  if (!folder.empty() && judgement.has_gates()) {
    WriteFileAtomic(folder / "verdict.json",
                    judgement.verdict.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (InGithubActions()) AppendSummary(judgement.markdown);
}

}  // namespace evald
