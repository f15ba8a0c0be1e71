#include <algorithm>
#include <atomic>
#include <thread>

#include "evald/error.h"
#include "fixture.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

size_t Entries(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// One token per byte of the text.
void EncodeBytes(Request* request) {
  request->context_tokens.assign(request->context.begin(), request->context.end());
  request->continuation_tokens.assign(request->continuation.begin(), request->continuation.end());
}

TEST(PreparedTask, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  const PreparedTask task(WriteExample(folder.path()));
  EXPECT_EQ(task.name(), "example");
  EXPECT_EQ(task.repeats(), 2);
  EXPECT_EQ(task.document_count(), 3);
  EXPECT_EQ(task.request_count(), 9);

  const PreparedDocument first = task.Document(0);
  EXPECT_EQ(first.doc, Json({{"q", "π?\n"}}));
  EXPECT_EQ(first.target, 2);
  EXPECT_EQ(first.choices, Json({"A", "B", "C", "D"}));
  EXPECT_TRUE(task.Document(1).choices.is_null());
  EXPECT_EQ(task.Document(2).target, Json({"x", "y"}));

  const std::vector<Request> scored = task.Requests(0, 2);
  ASSERT_EQ(scored.size(), 4u);
  EXPECT_EQ(scored[1].context, "Answer:");
  EXPECT_EQ(scored[3].context, "Other:");
  EXPECT_EQ(scored[2].continuation, " C");
  EXPECT_EQ(scored[2].kind, RequestKind::kLoglikelihood);
  EXPECT_EQ(scored[2].idx, 2);

  const std::vector<Request> generated = task.Requests(2, 3);
  ASSERT_EQ(generated.size(), 5u);
  EXPECT_EQ(generated[0].context, "");
  const std::vector<std::string> until = {"\n\n", "Q:"};
  EXPECT_EQ(generated[1].sampling.until, until);
  EXPECT_TRUE(generated[2].sampling.until.empty());
  EXPECT_EQ(generated[3].sampling.until, until);
  EXPECT_EQ(generated[3].sampling.max_gen_toks, 1024);
  EXPECT_TRUE(generated[4].sampling.until.empty());
  EXPECT_EQ(generated[4].doc_id, 2);
}

TEST(PreparedTask, NothingIsSeenBeforeFinishOrAfterAnAbandonedWriter) {
  const TemporaryFolder folder;
  {
    PreparedTaskWriter writer(folder.path() / "key", {{"name", "x"}});
    writer.Add({0, "doc", "target", nullptr}, {Scored(0, 0, "a", "b")});
    EXPECT_FALSE(fs::exists(folder.path() / "key"));
  }
  EXPECT_EQ(Entries(folder.path()), 0u);
}

TEST(PreparedTask, AnEmptyTaskIsATask) {
  const TemporaryFolder folder;
  PreparedTaskWriter(folder.path() / "key", {{"name", "x"}}).Finish();
  const PreparedTask task(folder.path() / "key");
  EXPECT_EQ(task.document_count(), 0);
  EXPECT_EQ(task.repeats(), 1);
  EXPECT_TRUE(task.Requests(0, 0).empty());
}

TEST(PreparedTask, TheFirstToPublishWins) {
  const TemporaryFolder folder;
  PreparedTaskWriter slow(folder.path() / "key/", {{"name", "slow"}});
  PreparedTaskWriter(folder.path() / "key", {{"name", "quick"}}).Finish();
  slow.Finish();
  EXPECT_EQ(PreparedTask(folder.path() / "key").name(), "quick");
}

TEST(PreparedTask, ALostRaceLeavesNothingBehind) {
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) PreparedTaskWriter(folder.path() / "key", {{"name", "x"}}).Finish();
  EXPECT_EQ(Entries(folder.path()), 1u);
}

TEST(PreparedTask, TokensAreMadeOnceAndReadBack) {
  const TemporaryFolder folder;
  const fs::path directory = WriteExample(folder.path());
  std::atomic<int> calls{0};
  const RequestEncoder encode = [&](Request* request) {
    ++calls;
    EncodeBytes(request);
  };
  PreparedTask task(directory);
  EXPECT_FALSE(task.AttachTokens("k"));
  EXPECT_TRUE(task.Requests(0, 1)[0].context_tokens.empty());
  task.MakeTokens("k", encode, 4);
  task.MakeTokens("k", encode, 4);
  EXPECT_EQ(calls, 9);

  PreparedTask other(directory);
  ASSERT_TRUE(other.AttachTokens("k"));
  for (const Request& request : other.Requests(0, 3)) {
    Request expected = request;
    EncodeBytes(&expected);
    EXPECT_EQ(request.context_tokens, expected.context_tokens);
    EXPECT_EQ(request.continuation_tokens, expected.continuation_tokens);
  }
  EXPECT_EQ(Entries(directory), 6u);
}

TEST(PreparedTask, ASharedContextIsStoredOnce) {
  const TemporaryFolder folder;
  PreparedTaskWriter writer(folder.path() / "key", {{"name", "x"}});
  const std::string context(1000, 'c');
  for (int64_t doc = 0; doc < 2; ++doc) {
    writer.Add({doc, "", "", nullptr},
               {Scored(doc, 0, context, "a"), Scored(doc, 1, context, "b")});
  }
  writer.Finish();
  EXPECT_LT(fs::file_size(folder.path() / "key/requests.jsonl"), 2500u);
  PreparedTask task(folder.path() / "key");
  task.MakeTokens("k", EncodeBytes, 1);
  EXPECT_EQ(fs::file_size(folder.path() / "key/tokens-k.bin"), 4u * (2 * 1000 + 4) + 4 * 24 + 56);
}

TEST(PreparedTask, ManyMayMakeTokensAtOnce) {
  const TemporaryFolder folder;
  const fs::path directory = WriteExample(folder.path());
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      PreparedTask task(directory);
      task.MakeTokens("k", EncodeBytes, 2);
      EXPECT_EQ(task.Requests(0, 1)[0].context_tokens.size(), 7u);
    });
  }
  threads.clear();
  EXPECT_EQ(Entries(directory), 6u);
}

TEST(PreparedTask, AnEncoderThatThrowsLeavesNoTokensFile) {
  const TemporaryFolder folder;
  const fs::path directory = WriteExample(folder.path());
  PreparedTask task(directory);
  const RequestEncoder refuse = [](Request*) { throw Error(ErrorKind::kInput, "no such token"); };
  EXPECT_THROW(task.MakeTokens("k", refuse, 2), Error);
  EXPECT_EQ(Entries(directory), 5u);
}

TEST(PreparedTask, OrderIsChecked) {
  const TemporaryFolder folder;
  PreparedTaskWriter writer(folder.path() / "key", {{"name", "x"}});
  EXPECT_THROW(writer.Add({1, "", "", nullptr}, {}), Error);
  EXPECT_THROW(writer.Add({0, "", "", nullptr}, {Scored(0, 1, "a", "b")}), Error);
}

}  // namespace
}  // namespace evald
