#include "orchestrator/verdict/judgement.h"

#include <fmt/format.h>

#include <optional>

#include "base/jsonl.h"
#include "orchestrator/verdict/examples.h"
#include "orchestrator/verdict/reports.h"
#include "orchestrator/verdict/result_set.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Why results are those of a run that is not complete; nothing for any others.
std::vector<std::string> IncompleteBecause(const Json& results) {
  const auto facts = results.find("evald");
  if (facts == results.end() || !facts->is_object()) return {};
  const auto complete = facts->find("complete");
  if (complete == facts->end() || *complete != false) return {};
  std::vector<std::string> problems;
  for (const Json& problem : facts->value("problems", Json::array()))
    if (problem.is_string()) problems.push_back(problem);
  if (problems.empty()) problems.emplace_back("the run is not complete");
  return problems;
}

std::optional<ResultSet> OpenBaseline(const GatePolicy& policy, const ReadRoots& roots) {
  if (policy.baseline.empty()) return std::nullopt;
  try {
    ResultSet baseline = ResultSet::Open(policy.baseline, roots);
    if (!IncompleteBecause(baseline.results()).empty()) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{}: these are the results of a run that is not complete",
                              policy.baseline.string()),
                  "finish the run with evald run --resume, or name another baseline");
    }
    return baseline;
  } catch (const Error& e) {
    throw Error(ErrorKind::kInput, policy.baseline_place + ": " + e.message(), e.remedy());
  }
}

// Whether `path` is the folder of a run without results.
bool IsUnfinished(const fs::path& path, const ReadRoots& roots) {
  if (!roots.HasFolder(path)) return false;
  const ReadFolder folder(path, roots);
  return folder.HasFile("run.json") && !folder.HasFile("results.json");
}

ResultSet OpenCandidate(const JudgeRequest& request) {
  return request.results.is_null() ? ResultSet::Open(request.candidate)
                                   : ResultSet(request.results, request.candidate);
}

Judgement Rendered(const Verdict& verdict, const JudgeRequest& request, const Json& results) {
  Judgement judgement;
  judgement.status = verdict.status;
  judgement.verdict = ToJson(verdict);
  VerdictForm form{.columns = request.columns};
  if (request.folded) form.folded = results.value("group_subtasks", Json::object());
  judgement.text = VerdictText(verdict, form);
  judgement.annotations = VerdictAnnotations(verdict);
  judgement.junit = VerdictJunit(verdict);
  judgement.markdown = VerdictMarkdown(verdict, results);
  return judgement;
}

}  // namespace

Judgement JudgeResults(const JudgeRequest& request, const ReadRoots& roots, const SayDoing& doing) {
  doing(fmt::format("reading the results in {}", request.candidate.string()));
  ResultSet candidate = OpenCandidate(request);
  const std::string against =
      request.policy.baseline.empty()
          ? ""
          : fmt::format(" against the baseline {}", request.policy.baseline.string());
  doing(fmt::format("judging {}{}", request.candidate.string(), against));
  std::optional<ResultSet> baseline = OpenBaseline(request.policy, roots);
  ResultSet* other = baseline ? &*baseline : nullptr;
  ExitStatus run_status = request.run_status;
  std::vector<std::string> problems = request.problems;
  if (run_status == ExitStatus::kDone) {  // a file of results.incomplete.json may be named
    problems = IncompleteBecause(candidate.results());
    if (!problems.empty()) run_status = ExitStatus::kIncomplete;
  }
  const Verdict verdict = Judge(request.policy, &candidate, other, run_status, problems);
  Judgement judgement = Rendered(verdict, request, candidate.results());
  if (request.page)
    judgement.page = VerdictHtml(verdict, candidate.results(), WrongAnswers(&candidate, other));
  return judgement;
}

Judgement NotJudged(const JudgeRequest& request, const Error& why) {
  Verdict verdict;
  verdict.run_status = request.run_status;
  verdict.status = request.policy.gates.empty()
                       ? request.run_status
                       : Foremost(request.run_status, ExitStatusFor(why.kind()));
  verdict.candidate = request.candidate.string();
  verdict.baseline = request.policy.baseline.string();
  verdict.alpha = request.policy.alpha;
  verdict.problems = request.problems;
  for (const Gate& gate : request.policy.gates) {
    GateResult result;
    result.gate = gate;
    result.key = {gate.task, gate.metric, gate.filter};
    result.status = ExitStatusFor(why.kind());
    result.cause = why.what();
    verdict.gates.push_back(std::move(result));
  }
  Judgement judgement = Rendered(verdict, request, ResultSet(Json::object(), {}).results());
  judgement.failure = why.what();
  return judgement;
}

void CheckGates(const GatePolicy& policy, const Json& expected, const ReadRoots& roots,
                bool baseline_complete) {
  std::optional<ResultSet> baseline;
  const bool later =
      !policy.baseline.empty() && !baseline_complete && IsUnfinished(policy.baseline, roots);
  if (!later) baseline = OpenBaseline(policy, roots);
  CheckPolicy(policy, ResultSet(expected, {}), baseline ? &*baseline : nullptr);
}

Json ToJson(const Judgement& judgement) {
  return {{"status", static_cast<int>(judgement.status)},
          {"verdict", judgement.verdict},
          {"text", judgement.text},
          {"annotations", judgement.annotations},
          {"junit", judgement.junit},
          {"markdown", judgement.markdown},
          {"page", judgement.page}};
}

Judgement JudgementFromJson(const Json& json, const std::string& where) {
  Judgement judgement;
  const int status = Field<int>(json, "status", where);
  if (status < 0 || status > static_cast<int>(ExitStatus::kInconclusive)) {
    ThrowField(json, "status", "an exit status", where);
  }
  judgement.status = static_cast<ExitStatus>(status);
  judgement.verdict = Field<Json>(json, "verdict", where);
  if (!Field<Json>(judgement.verdict, "gates", where).is_array())
    ThrowField(judgement.verdict, "gates", "an array", where);
  Field<std::string>(judgement.verdict, "summary", where);
  judgement.text = Field<std::string>(json, "text", where);
  judgement.annotations = Field<std::string>(json, "annotations", where);
  judgement.junit = Field<std::string>(json, "junit", where);
  judgement.markdown = Field<std::string>(json, "markdown", where);
  judgement.page = Field<std::string>(json, "page", where);
  return judgement;
}

}  // namespace evald
