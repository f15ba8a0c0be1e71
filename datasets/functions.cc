#include "datasets/functions.h"

#include <fmt/format.h>

#include <map>

#include "evald/error.h"
#include "evald/task.h"

namespace evald {
namespace {

using SamplesFunction = std::vector<Json> (*)();
using ProcessFunction = void (*)(Documents* documents, FunctionRandom* random);
using OneDocFunction = Json (*)(const Json&);

// Three of MBPP's "prompt" rows, as in lm_eval/tasks/mbpp/utils.py (0.4.13).
std::vector<Json> MbppSamples() {
  return {
      {{"task_id", 2},
       {"text", "Write a function to find the similar elements from the given two tuple lists."},
       {"code",
        "def similar_elements(test_tup1, test_tup2):\r\n  res = tuple(set(test_tup1) & "
        "set(test_tup2))\r\n  return (res) "},
       {"test_list",
        {"assert similar_elements((3, 4, 5, 6),(5, 7, 4, 10)) == (4, 5)",
         "assert similar_elements((1, 2, 3, 4),(5, 4, 3, 7)) == (3, 4)",
         "assert similar_elements((11, 12, 14, 13),(17, 15, 14, 13)) == (13, 14)"}},
       {"is_fewshot", true}},
      {{"task_id", 3},
       {"text", "Write a python function to identify non-prime numbers."},
       {"code",
        "import math\r\ndef is_not_prime(n):\r\n    result = False\r\n    for i in "
        "range(2,int(math.sqrt(n)) + 1):\r\n        if n % i == 0:\r\n            result = "
        "True\r\n    return result"},
       {"test_list",
        {"assert is_not_prime(2) == False", "assert is_not_prime(10) == True",
         "assert is_not_prime(35) == True"}},
       {"is_fewshot", true}},
      {{"task_id", 4},
       {"text",
        "Write a function to find the largest integers from a given list of numbers using heap "
        "queue algorithm."},
       {"code",
        "import heapq as hq\r\ndef heap_queue_largest(nums,n):\r\n  largest_nums = hq.nlargest(n, "
        "nums)\r\n  return largest_nums"},
       {"test_list",
        {"assert heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],3)==[85, 75, 65] ",
         "assert heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],2)==[85, 75] ",
         "assert heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],5)==[85, 75, 65, 58, "
         "35]"}},
       {"is_fewshot", true}},
  };
}

const std::map<std::string, SamplesFunction>& SamplesFunctions() {
  static const std::map<std::string, SamplesFunction> kAll = {
      {"mbpp/utils.list_fewshot_samples", MbppSamples},
  };
  return kAll;
}

// Keeps the rows of one of MMLU-Pro's subjects.
template <char const* category>
void MmluProSubject(Documents* documents, FunctionRandom*) {
  MmluProDocs(documents, category);
}

// Names as template arguments need linkage.
constexpr char kBiology[] = "biology", kBusiness[] = "business", kChemistry[] = "chemistry",
               kComputerScience[] = "computer science", kEconomics[] = "economics",
               kEngineering[] = "engineering", kHealth[] = "health", kHistory[] = "history",
               kLaw[] = "law", kMath[] = "math", kOther[] = "other", kPhilosophy[] = "philosophy",
               kPhysics[] = "physics", kPsychology[] = "psychology";

const std::map<std::string, ProcessFunction>& ProcessFunctions() {
  static const std::map<std::string, ProcessFunction> kAll = {
      {"hellaswag/utils.process_docs", HellaswagDocs},
      {"gpqa/zeroshot/utils.process_docs", GpqaDocs},
      {"gpqa/n_shot/utils.process_docs", GpqaDocsOfOwnGenerator},
      {"gpqa/generative/utils.process_docs", GpqaDocsWithList},
      {"drop/utils.process_docs", DropDocs},
      {"truthfulqa/utils.process_docs_gen", TruthfulqaDocs},
      {"hendrycks_math/utils.process_docs", HendrycksMathDocs},
      {"mmlu_pro/utils.process_biology", MmluProSubject<kBiology>},
      {"mmlu_pro/utils.process_business", MmluProSubject<kBusiness>},
      {"mmlu_pro/utils.process_chemistry", MmluProSubject<kChemistry>},
      {"mmlu_pro/utils.process_computer_science", MmluProSubject<kComputerScience>},
      {"mmlu_pro/utils.process_economics", MmluProSubject<kEconomics>},
      {"mmlu_pro/utils.process_engineering", MmluProSubject<kEngineering>},
      {"mmlu_pro/utils.process_health", MmluProSubject<kHealth>},
      {"mmlu_pro/utils.process_history", MmluProSubject<kHistory>},
      {"mmlu_pro/utils.process_law", MmluProSubject<kLaw>},
      {"mmlu_pro/utils.process_math", MmluProSubject<kMath>},
      {"mmlu_pro/utils.process_other", MmluProSubject<kOther>},
      {"mmlu_pro/utils.process_philosophy", MmluProSubject<kPhilosophy>},
      {"mmlu_pro/utils.process_physics", MmluProSubject<kPhysics>},
      {"mmlu_pro/utils.process_psychology", MmluProSubject<kPsychology>},
  };
  return kAll;
}

const std::map<std::string, OneDocFunction>& DocFunctions() {
  static const std::map<std::string, OneDocFunction> kAll = {
      {"winogrande/preprocess_winogrande.doc_to_text", WinograndeText},
      {"winogrande/preprocess_winogrande.doc_to_target", WinograndeTarget},
      {"winogrande/preprocess_winogrande.doc_to_choice", WinograndeChoice},
      {"race/preprocess_race.doc_to_text", RaceText},
      {"race/preprocess_race.doc_to_target", RaceTarget},
      {"race/preprocess_race.doc_to_choice", RaceChoice},
      {"mmlu_pro/utils.doc_to_text", MmluProText},
      {"mmlu_pro/utils.fewshot_to_text", MmluProText},
      {"mmlu_pro/utils.fewshot_to_target", MmluProFewshotTarget},
      {"wikitext/preprocess_wikitext.wikitext_detokenizer", WikitextTarget},
  };
  return kAll;
}

template <typename Function>
Function Find(const std::map<std::string, Function>& known, const std::string& name,
              const std::string& where) {
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  RefuseTaskFunction(name, where);
}

}  // namespace

bool IsBuiltinSamplesFunction(const std::string& name) {
  return SamplesFunctions().count(name) != 0;
}
bool IsBuiltinProcessDocs(const std::string& name) { return ProcessFunctions().count(name) != 0; }
bool IsBuiltinDocFunction(const std::string& name) { return DocFunctions().count(name) != 0; }

void RefuseTaskFunction(const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& item : SamplesFunctions()) names.push_back(item.first);
  for (const auto& item : ProcessFunctions()) names.push_back(item.first);
  for (const auto& item : DocFunctions()) names.push_back(item.first);
  RefuseFunction(where + ": ", name, "is not built in", names,
                 "let evald run the Python code of task files in a sandbox with 'task_code: allow' "
                 "or --allow-task-code (docs/task-code.md); built in are: ");
}

std::vector<Json> FewshotSamples(const std::string& name, const std::string& where) {
  return Find(SamplesFunctions(), name, where)();
}

void ProcessDocs(const std::string& name, Documents* documents, FunctionRandom* random,
                 const std::string& where) {
  const ProcessFunction function = Find(ProcessFunctions(), name, where);
  try {
    function(documents, random);
    if (documents->rows.empty())
      throw Error(ErrorKind::kInput, "gives no documents",
                  "see whether the task's data is what the function expects");
  } catch (Error& error) {
    throw error.AddContext(fmt::format("the function '{}'", name));
  }
}

Json DocFunction(const std::string& name, const Json& doc, const std::string& where) {
  const OneDocFunction function = Find(DocFunctions(), name, where);
  try {
    return function(doc);
  } catch (Error& error) {
    throw error.AddContext(fmt::format("{}: the function '{}'", where, name));
  }
}

}  // namespace evald
