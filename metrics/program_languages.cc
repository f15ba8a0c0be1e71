#include "metrics/program_languages.h"

#include <fmt/format.h>

#include <vector>

#include "evald/error.h"
#include "metrics/sandbox/language.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/program_rule.h"

namespace evald {
namespace {

// Whether a metric runs programs. An unknown one does not: the scorer refuses it, and says more.
bool RunsPrograms(const MetricSpec& spec, const OutputType& type) {
  try {
    const Metric& metric = ServedMetric(spec, type);
    return metric.text && metric.text->runs_code;
  } catch (const Error&) {
    return false;
  }
}

/// The rules of the task's metrics that run programs.
std::vector<ProgramRule> RulesOf(const TaskDefinition& task) {
  std::vector<ProgramRule> rules;
  // A process_results gives its values itself, under names that no metric may have.
  if (task.output_type != "generate_until" || task.command || !task.process_results.empty())
    return rules;
  for (const MetricSpec& spec : task.metrics) {
    if (IsOwnFunction(spec.function)) continue;
    if (RunsPrograms(spec, OutputTypeOf(task.output_type))) rules.push_back(ReadProgramRule(spec));
  }
  return rules;
}

}  // namespace

std::set<std::string> ProgramLanguages(const TaskDefinition& task, const PreparedTask* prepared) {
  std::set<std::string> languages;
  for (const ProgramRule& rule : RulesOf(task)) {
    if (rule.language_column.empty()) {
      languages.insert(rule.language);
      continue;
    }
    for (int64_t id = 0; prepared != nullptr && id < prepared->document_count(); ++id)
      languages.insert(LanguageOf(rule, prepared->Document(id).doc));
  }
  return languages;
}

void RequireProgramLanguages(const TaskDefinition& task, const PreparedTask* prepared) {
  for (const std::string& name : ProgramLanguages(task, prepared)) {
    const sandbox::Language& language = *sandbox::FindLanguage(name);
    const std::string missing = sandbox::MissingTool(language);
    if (missing.empty()) continue;
    throw Error(ErrorKind::kInput,
                fmt::format("task '{}': its programs in {} need {}, which is not there", task.name,
                            name, missing),
                sandbox::InstallLine(language));
  }
}

}  // namespace evald
