// The built-in functions of lm_eval's tasks against the Python ones, on 10,000 documents each
// (tests/oracle/task_functions_golden.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "datasets/functions.h"
#include "datasets/known_modules.h"
#include "evald/error.h"
#include "metrics/filters.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/task_results.h"
#include "python/json.h"
#include "python/random.h"
#include "python/value.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Makes documents as draw() of the script does.
class Maker {
 public:
  Maker(const Json& pools, int64_t seed) : pools_(pools), random_(seed) {}

  Json Draw(const Json& recipe) {
    const std::string& kind = recipe.begin().key();
    const Json& what = recipe.begin().value();
    if (kind == "pick") return what[Below(what.size())];
    if (kind == "text") return Text(pools_.at(what.get<std::string>()), recipe.at("most"));
    if (kind == "join") return Joined(what);
    if (kind == "list") return List(recipe);
    if (kind == "object") return Object(what);
    if (kind == "number") return static_cast<int64_t>(Below(what.get<size_t>()));
    if (kind == "likelihood") {
      const double number = -static_cast<double>(Below(what.get<size_t>())) / 64;
      return Json::array({number == 0 ? 0.0 : number, Below(2) == 1});
    }
    if (kind == "optional") return Below(recipe.at("of").get<size_t>()) == 0 ? Json() : Draw(what);
    if (kind == "repr") return PythonRepr(Draw(what));
    throw Error(ErrorKind::kInternal, "no such recipe: " + kind);
  }

  Json Object(const Json& members) {
    Json made = Json::object();
    for (const auto& [name, recipe] : members.items()) made[name] = Draw(recipe);
    return made;
  }

 private:
  size_t Below(size_t count) { return random_.RandBelow(count); }

  std::string Text(const Json& pool, size_t most) {
    std::string text;
    for (size_t left = Below(most + 1); left > 0; --left)
      text += pool[Below(pool.size())].get<std::string>();
    return text;
  }

  std::string Joined(const Json& parts) {
    std::string text;
    for (const Json& part : parts) text += Draw(part).get<std::string>();
    return text;
  }

  Json List(const Json& recipe) {
    const auto least = recipe.at("least").get<size_t>();
    Json list = Json::array();
    for (size_t left = least + Below(recipe.at("most").get<size_t>() - least + 1); left > 0; --left)
      list.push_back(Draw(recipe.at("list")));
    return list;
  }

  const Json& pools_;
  PythonRandom random_;
};

// A function of the golden file, and what it keeps from one call to the next.
class Function {
 public:
  Function(const Json& entry, uint64_t seed)
      : name_(entry.at("function")),
        recipe_(entry.at("recipe")),
        kind_(recipe_.at("kind")),
        random_{seed} {}

  Json Case(Maker* maker) const {
    Json one = {{"doc", maker->Object(recipe_.at("doc"))}};
    if (recipe_.contains("results")) one["results"] = maker->Draw(recipe_.at("results"));
    return one;
  }

  // As outputs() of the script.
  std::vector<Json> Outputs(const std::vector<Json>& cases) {
    std::vector<Json> docs, outputs;
    for (const Json& one : cases) docs.push_back(one.at("doc"));
    if (kind_ == "docs" && recipe_.value("together", false)) return Processed(docs);
    for (const Json& one : cases) outputs.push_back(Safely([&] { return Output(one); }));
    return outputs;
  }

 private:
  template <typename Work>
  static Json Safely(Work work) {
    try {
      return work();
    } catch (const Error&) {
      return {{"raises", true}};
    }
  }

  std::vector<Json> Processed(std::vector<Json> rows) {
    Documents documents;
    documents.where.assign(rows.size(), "a row");
    documents.rows = std::move(rows);
    try {
      ProcessDocs(name_, &documents, &random_, "here");
    } catch (const Error&) {
      if (!documents.rows.empty()) throw;  // no row is left
    }
    return documents.rows;
  }

  Json Output(const Json& one) {
    if (kind_ == "docs") return Processed({one.at("doc")}).at(0);
    if (kind_ == "doc") return DocFunction(name_, one.at("doc"), "here");
    if (kind_ == "results") return FindTaskResults(name_)->score(one.at("doc"), Results(one));
    PreparedDocument document;
    document.doc = one.at("doc");
    Fallbacks fallbacks;
    const auto filter = MakeFilter({"!function " + name_, recipe_.at("settings")});
    return filter->Apply(one.at("results"), document, &fallbacks);
  }

  std::vector<Json> Results(const Json& one) const {
    auto results = one.at("results").get<std::vector<Json>>();
    if (!recipe_.contains("as_many_as")) return results;
    const Json* counted = &one.at("doc");
    for (const Json& key : recipe_.at("as_many_as")) counted = &counted->at(key.get<std::string>());
    results.resize(counted->size());
    return results;
  }

  std::string name_;
  const Json& recipe_;
  std::string kind_;
  FunctionRandom random_;
};

const Json& Golden() {
  static const Json golden = [] {
    const std::string path = EVALD_SOURCE_DIR "/tests/golden/datasets/task_functions.json";
    return ParseJson(ReadFile(path), path);
  }();
  return golden;
}

std::string LineOf(const Json& value) {
  return PythonJson(value, {.item_separator = ",", .key_separator = ":"});
}

class TaskFunctions : public ::testing::TestWithParam<size_t> {};

TEST_P(TaskFunctions, GiveWhatThePythonOnesGive) {
  const Json& entry = Golden().at("functions").at(GetParam());
  const auto seed = Golden().at("seed").get<int64_t>();
  const auto block = Golden().at("block").get<size_t>();
  const size_t blocks = Golden().at("documents").get<size_t>() / block;
  ASSERT_EQ(entry.at("hashes").size(), blocks);
  Maker maker(Golden().at("pools"), seed);
  Function function(entry, static_cast<uint64_t>(seed));
  size_t shown = 0;
  for (size_t i = 0; i < blocks; ++i) {
    std::vector<Json> cases;
    for (size_t k = 0; k < block; ++k) cases.push_back(function.Case(&maker));
    std::string lines;
    for (const Json& output : function.Outputs(cases)) {
      lines += LineOf(output) + "\n";
      if (shown == entry.at("first").size()) continue;
      EXPECT_EQ(LineOf(output), LineOf(entry.at("first")[shown]))
          << "of " << LineOf(cases[shown % block]);
      ++shown;
    }
    ASSERT_EQ(Sha256Hex(lines).substr(0, 16), entry.at("hashes")[i].get<std::string>())
        << "documents " << i * block << " to " << (i + 1) * block - 1;
  }
}

TEST_P(TaskFunctions, AreKnownByTheContentOfTheirFile) {
  const Json& entry = Golden().at("functions").at(GetParam());
  const auto name = entry.at("function").get<std::string>();
  const auto content = entry.at("sha256").get<std::string>();
  const std::string function = name.substr(name.rfind('.') + 1);
  EXPECT_EQ(FunctionOfContent(content, function), name);
  EXPECT_EQ(FunctionOfContent(Sha256Hex(content), function), "");
  EXPECT_EQ(FunctionOfContent(content, function + "_"), "");
}

INSTANTIATE_TEST_SUITE_P(
    OfLmEval, TaskFunctions, ::testing::Range<size_t>(0, Golden().at("functions").size()),
    [](const auto& info) {
      auto name = Golden().at("functions")[info.param].at("function").template get<std::string>();
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

TEST(TaskFunctionErrors, NameTheFunctionTheRowAndTheColumn) {
  Documents documents;
  documents.rows = {{{"ctx_a", "a"},
                     {"ctx_b", "b"},
                     {"activity_label", "c"},
                     {"endings", Json::array({"d"})},
                     {"label", "0"}},
                    {{"ctx_a", "a"}, {"ctx_b", nullptr}, {"activity_label", "c"}}};
  documents.where = {"data.jsonl:1", "data.jsonl:2"};
  FunctionRandom random;
  EXPECT_THAT(
      CaughtText([&] { ProcessDocs("hellaswag/utils.process_docs", &documents, &random, "t"); }),
      HasSubstr("the function 'hellaswag/utils.process_docs': data.jsonl:2: the column 'ctx_b' is "
                "None, expected text"));
  documents.rows = {{{"category", "law"}}};
  documents.where = {"data.jsonl:1"};
  EXPECT_THAT(
      CaughtText([&] { ProcessDocs("mmlu_pro/utils.process_math", &documents, &random, "t"); }),
      HasSubstr("the function 'mmlu_pro/utils.process_math': gives no documents"));
  EXPECT_THAT(
      CaughtText([&] {
        DocFunction("winogrande/preprocess_winogrande.doc_to_text", {{"answer", "3"}}, "t:4");
      }),
      HasSubstr("t:4: the function 'winogrande/preprocess_winogrande.doc_to_text': the column "
                "'answer' is '3', expected 1 or 2"));
}

TEST(TaskFunctionRows, AreThoseOfMapAndFilter) {
  Documents documents;
  documents.columns = {"question", "correct_answers", "incorrect_answers"};
  documents.rows = {{{"question", " q "},
                     {"correct_answers", Json::array({"a"})},
                     {"incorrect_answers", Json::array()},
                     {"more", 1}}};
  documents.where = {"data.jsonl:1"};
  FunctionRandom random;
  ProcessDocs("truthfulqa/utils.process_docs_gen", &documents, &random, "t");
  EXPECT_EQ(documents.rows[0].dump(),
            R"({"question":"q","correct_answers":["a.","I have no comment."],)"
            R"("incorrect_answers":[],"more":1})");
  EXPECT_THAT(documents.columns, ElementsAre("question", "correct_answers", "incorrect_answers"));
  documents.columns = {"category"};
  documents.rows = {{{"category", "law"}}, {{"category", "math"}}, {{"category", "law"}}};
  documents.where = {"f:1", "f:2", "f:3"};
  ProcessDocs("mmlu_pro/utils.process_law", &documents, &random, "t");
  EXPECT_THAT(documents.where, ElementsAre("f:1", "f:3"));
}

}  // namespace
}  // namespace evald
