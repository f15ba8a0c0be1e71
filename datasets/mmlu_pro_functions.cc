// The functions of lm_eval/tasks/mmlu_pro.
#include "datasets/document_functions.h"
#include "python/str.h"
#include "python/value.h"

namespace evald {

void MmluProDocs(Documents* documents, const char* category) {
  FilterRows(documents, [&](const Json& row) {
    const auto found = row.find("category");
    return found != row.end() ? *found == category : TextColumn(row, "category") == category;
  });
}

// doc_to_text and fewshot_to_text. Options behind the tenth have no letter.
Json MmluProText(const Json& doc) {
  constexpr char kLetters[] = "ABCDEFGHIJ";
  std::string prompt = "Question:\n" + TextColumn(doc, "question") + "\nOptions:\n";
  const std::vector<std::string> options = TextsColumn(doc, "options");
  for (size_t i = 0; i < options.size() && kLetters[i] != '\0'; ++i) {
    prompt += kLetters[i];
    prompt += ". " + std::string(python::Strip(options[i])) + "\n";
  }
  return prompt + "Answer: Let's think step by step.";
}

Json MmluProFewshotTarget(const Json& doc) {
  return python::Replace(TextColumn(doc, "cot_content"), "A: Let's think step by step. ", "");
}

}  // namespace evald
