#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "datasets/documents.h"
#include "evald/json.h"

// Functions of lm_eval's tasks that make or read documents, built in: a file for each family of
// tasks, and the tables that name them in functions.cc. Each does what the Python function of
// lm_eval 0.4.13 does. All throw Error(kInput) where Python raises.
namespace evald {

/// What functions of one task draw with.
struct FunctionRandom {
  /// The seed of Python's own generator, set before each function that makes documents. 0 is the
  /// harness's.
  uint64_t seed = 0;
};

/// dataset.map(change): each row gets the members that `change` makes of the row, in the place of
/// those of the same name. Errors name the row's place.
void MapRows(Documents* documents, const std::function<Json(const Json& row)>& change);

/// dataset.filter(keeps).
void FilterRows(Documents* documents, const std::function<bool(const Json& row)>& keeps);

/// The text in a column. Throws for another value.
const std::string& TextColumn(const Json& row, const std::string& column);

/// The items of a list in a column, which must be texts.
std::vector<std::string> TextsColumn(const Json& row, const std::string& column);

// choice_functions.cc: hellaswag, winogrande, race
void HellaswagDocs(Documents* documents, FunctionRandom* random);
Json WinograndeText(const Json& doc);
Json WinograndeTarget(const Json& doc);
Json WinograndeChoice(const Json& doc);
Json RaceText(const Json& doc);
Json RaceTarget(const Json& doc);
Json RaceChoice(const Json& doc);

// gpqa_functions.cc
void GpqaDocs(Documents* documents, FunctionRandom* random);
void GpqaDocsWithList(Documents* documents, FunctionRandom* random);
void GpqaDocsOfOwnGenerator(Documents* documents, FunctionRandom* random);

// mmlu_pro_functions.cc
/// Keeps the rows of a category.
void MmluProDocs(Documents* documents, const char* category);
Json MmluProText(const Json& doc);
Json MmluProFewshotTarget(const Json& doc);

// text_functions.cc: wikitext, drop, hendrycks_math, truthfulqa_gen
Json WikitextTarget(const Json& doc);
void DropDocs(Documents* documents, FunctionRandom* random);
void HendrycksMathDocs(Documents* documents, FunctionRandom* random);
void TruthfulqaDocs(Documents* documents, FunctionRandom* random);

}  // namespace evald
