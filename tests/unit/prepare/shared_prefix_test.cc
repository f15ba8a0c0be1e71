#include "orchestrator/prepare/shared_prefix.h"

#include <fmt/format.h>

#include "tests/unit/prepared/fixture.h"

namespace evald {
namespace {

const std::string kExamples(400, 'x');

PreparedTask Written(const std::filesystem::path& folder,
                     const std::vector<std::vector<Request>>& documents) {
  PreparedTaskWriter writer(folder, {{"name", "t"}, {"repeats", 1}});
  for (size_t d = 0; d < documents.size(); ++d)
    writer.Add({static_cast<int64_t>(d), {}, 0, nullptr}, documents[d]);
  writer.Finish();
  return PreparedTask(folder);
}

TEST(SharedPrefix, WhatAllPromptsBeginWith) {
  TemporaryFolder folder;
  std::vector<std::vector<Request>> documents;
  for (int d = 0; d < 100; ++d) {
    const std::string question = fmt::format("{}{}?", kExamples, d % 10);
    documents.push_back({Scored(d, 0, question, " A"), Scored(d, 1, question, " B")});
  }
  EXPECT_DOUBLE_EQ(SharedPrefixTokens(Written(folder.path() / "t", documents)), 100)
      << "four bytes a token";
}

TEST(SharedPrefix, TokensWhereThereAreAny) {
  TemporaryFolder folder;
  std::vector<std::vector<Request>> documents;
  for (int d = 0; d < 5; ++d) documents.push_back({Scored(d, 0, fmt::format("same {}", d), "")});
  PreparedTask task = Written(folder.path() / "t", documents);
  task.MakeTokens(
      "k",
      [](Request* request) {
        request->context_tokens = {7, 8, 9, static_cast<int32_t>(request->doc_id), 3};
      },
      1);
  EXPECT_DOUBLE_EQ(SharedPrefixTokens(task), 3);
}

TEST(SharedPrefix, NothingIsSharedByOneOrByNone) {
  TemporaryFolder folder;
  EXPECT_EQ(SharedPrefixTokens(Written(folder.path() / "none", {})), 0);
  EXPECT_EQ(SharedPrefixTokens(Written(folder.path() / "one", {{Scored(0, 0, kExamples, "")}})), 0);
  EXPECT_EQ(SharedPrefixTokens(Written(folder.path() / "bare", {{}, {}})), 0);
  EXPECT_EQ(SharedPrefixTokens(Written(folder.path() / "apart",
                                       {{Scored(0, 0, "a", "")}, {Scored(1, 0, "b", "")}})),
            0);
}

}  // namespace
}  // namespace evald
