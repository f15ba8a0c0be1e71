// process_docs of the folders of lm_eval/tasks/gpqa: the four answers in an order drawn at random.
#include <fmt/format.h>

#include <algorithm>

#include "datasets/document_functions.h"
#include "python/random.h"
#include "python/str.h"

namespace evald {
namespace {

std::string GpqaClean(const Json& row, const char* column) {
  const auto found = row.find(column);
  if (found != row.end() && found->is_null()) return " ";
  const std::string titled =
      python::Replace(python::Strip(TextColumn(row, column)), " [title]", ". ");
  return python::Replace(titled, "  ", " ");
}

void ShuffleAnswers(Documents* documents, PythonRandom* random, bool with_list) {
  MapRows(documents, [&](const Json& row) {
    std::vector<std::string> choices;
    for (const char* column :
         {"Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3", "Correct Answer"}) {
      choices.push_back(GpqaClean(row, column));
    }
    const std::string right = choices.back();
    random->Shuffle(&choices);
    // The first of equal answers counts.
    const auto place = std::find(choices.begin(), choices.end(), right) - choices.begin();
    Json made = Json::object();
    for (size_t i = 0; i < choices.size(); ++i) made[fmt::format("choice{}", i + 1)] = choices[i];
    if (with_list) made["choices"] = choices;
    made["answer"] = fmt::format("({})", static_cast<char>('A' + place));
    return made;
  });
}

}  // namespace

void GpqaDocs(Documents* documents, FunctionRandom* random) {
  PythonRandom drawn(static_cast<int64_t>(random->seed));
  ShuffleAnswers(documents, &drawn, false);
}

void GpqaDocsWithList(Documents* documents, FunctionRandom* random) {
  PythonRandom drawn(static_cast<int64_t>(random->seed));
  ShuffleAnswers(documents, &drawn, true);
}

// gpqa/n_shot/utils.py has a generator of its own. The harness calls the function for the examples,
// for the prompts and for the scores. The generator would go on from call to call, but `datasets`
// keeps on disk what a function made of the rows, by a hash that has the generator's state. Once it
// is there, each call finds what the first one drew, and prompts and scores fit together.
void GpqaDocsOfOwnGenerator(Documents* documents, FunctionRandom*) {
  constexpr int64_t kSeed = 42;
  PythonRandom drawn(kSeed);
  ShuffleAnswers(documents, &drawn, false);
}

}  // namespace evald
