// Reads from a run's folder, and refusals to read there.
#include <sys/stat.h>

#include <fstream>
#include <future>

#include "api_case.h"
#include "evald/error.h"
#include "orchestrator/api/routes.h"
#include "orchestrator/api/samples.h"
#include "orchestrator/fleet/fair_threads.h"
#include "tests/unit/support/little_memory.h"

namespace evald::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class ResultsTest : public ApiCase {
 protected:
  void SetUp() override {
    ApiCase::SetUp();
    id_ = Submit();
    run_ = "/v1/runs/" + id_;
  }
  std::vector<int> Ids(const Json& page) {
    std::vector<int> ids;
    for (const Json& sample : page["samples"]) ids.push_back(sample["doc_id"]);
    return ids;
  }
  std::string id_, run_;
};

TEST_F(ResultsTest, FilesAreThereWhenTheRunIsDone) {
  EXPECT_EQ(Get(run_ + "/results").status, 404);
  EXPECT_THAT(Get(run_ + "/results").body, HasSubstr("queued"));
  service_.Finish(id_);
  const Answer results = Get(run_ + "/results");
  EXPECT_EQ(results.status, 200);
  EXPECT_EQ(Parse(results)["results"]["sums"]["exact_match,none"], 0.5);
  EXPECT_EQ(Get(run_ + "/results", "If-None-Match: " + results.headers.at("etag") + "\r\n").status,
            304);
  EXPECT_EQ(Get(run_ + "/timeline").status, 200);
  EXPECT_EQ(Get(run_ + "/verdict").status, 404);
  const Answer report = Get(run_ + "/report");
  EXPECT_THAT(report.headers.at("content-security-policy"), HasSubstr("sandbox"));
  EXPECT_EQ(report.headers.at("content-type"), "text/html; charset=utf-8");
}

TEST_F(ResultsTest, LargeFilesComeWhole) {
  service_.Finish(id_);
  const std::string text(3'000'000, ' ');
  std::ofstream(folder_.path() / id_ / "timeline.json") << text;
  EXPECT_EQ(Get(run_ + "/timeline").body, text);
}

TEST_F(ResultsTest, SamplesComeByPage) {
  EXPECT_EQ(Get(run_ + "/samples/sums").status, 409);
  service_.Finish(id_, 25);
  Json page = Parse(Get(run_ + "/samples/sums?limit=10"));
  EXPECT_EQ(page["total"], 25);
  EXPECT_EQ(page["next"], "10");
  std::vector<int> ids = Ids(page);
  while (!page["next"].is_null()) {
    page = Parse(Get(run_ + "/samples/sums?limit=10&cursor=" + page["next"].get<std::string>()));
    for (const int id : Ids(page)) ids.push_back(id);
  }
  ASSERT_EQ(ids.size(), 25u);
  for (int i = 0; i < 25; ++i) EXPECT_EQ(ids[static_cast<size_t>(i)], i);
  const Json sample = page["samples"][0];
  EXPECT_EQ(sample["prompt"], "Q: 20");
  EXPECT_EQ(sample["answers"], Json::parse(R"([["answer 20"]])"));
  EXPECT_TRUE(sample["thinking"].is_null());
  EXPECT_EQ(sample["scores"]["exact_match"], 1.0);
  EXPECT_EQ(sample["correct"], true);
  EXPECT_EQ(sample["target"], "20");
}

TEST_F(ResultsTest, SamplesOfATaskAtWorkAreThoseSoFar) {
  const std::string samples = run_ + "/samples/sums?limit=2", marks = run_ + "/marks/sums";
  EXPECT_EQ(Get(samples).status, 409);
  EXPECT_EQ(Get(marks).status, 409);
  service_.Score(id_, 3);
  Json page = Parse(Get(samples));
  EXPECT_EQ(page["so_far"], (Json{{"scored", 3}, {"documents", 10}}));
  EXPECT_EQ(page["total"], 3);
  EXPECT_THAT(Ids(page), ::testing::ElementsAre(0, 1));
  EXPECT_EQ(Parse(Get(marks))["so_far"], page["so_far"]);
  // The next page goes on in the same file, although more documents are scored by now.
  service_.Score(id_, 6);
  page = Parse(Get(samples + "&cursor=" + page["next"].get<std::string>()));
  EXPECT_THAT(Ids(page), ::testing::ElementsAre(2));
  EXPECT_TRUE(page["next"].is_null());
  EXPECT_EQ(Parse(Get(samples))["total"], 6);
  EXPECT_EQ(Get(run_ + "/samples/choice").status, 409);
  service_.Finish(id_);
  EXPECT_TRUE(Parse(Get(samples))["so_far"].is_null());
  EXPECT_TRUE(Parse(Get(marks))["so_far"].is_null());
}

TEST_F(ResultsTest, SamplesAreFiltered) {
  service_.Finish(id_, 12);
  const std::string samples = run_ + "/samples/choice?limit=2&";
  EXPECT_THAT(Ids(Parse(Get(samples + "correct=true"))), ::testing::ElementsAre(0, 2));
  const Json wrong = Parse(Get(samples + "correct=false"));
  EXPECT_THAT(Ids(wrong), ::testing::ElementsAre(1, 3));
  EXPECT_THAT(Ids(Parse(Get(samples + "correct=false&cursor=" + wrong["next"].get<std::string>()))),
              ::testing::ElementsAre(5, 7));
  EXPECT_THAT(Ids(Parse(Get(samples + "filter=flexible"))), ::testing::ElementsAre(2, 3));
  EXPECT_THAT(Ids(Parse(Get(samples + "filter=flexible&correct=true"))),
              ::testing::ElementsAre(2, 6));
  EXPECT_TRUE(Parse(Get(samples + "filter=none"))["samples"].empty());
  EXPECT_TRUE(Parse(Get(samples + "cursor=999"))["samples"].empty());
  EXPECT_EQ(Get(samples + "correct=maybe").status, 400);
  EXPECT_EQ(Get(samples + "cursor=-1").status, 400);
}

TEST_F(ResultsTest, NamesDoNotLeadOutOfTheFolder) {
  service_.Finish(id_);
  std::ofstream(folder_.path() / "samples_secret.jsonl") << "{}\n";
  std::ofstream(folder_.path() / "results.json") << "secret\n";
  const std::string tasks[] = {"../samples_secret",
                               "..%2F..%2Fsamples_secret",
                               "%2e%2e%2fsecret",
                               "sums%00",
                               "sums.jsonl",
                               "/../../secret",
                               "%2Fetc%2Fpasswd",
                               "sums%2F..%2Fsums",
                               "secret",
                               "",
                               "..",
                               "%2e%2e"};
  for (const std::string& task : tasks) {
    const Answer answer = Get(run_ + "/samples/" + task);
    EXPECT_TRUE(answer.status == 404 || answer.status == 400) << task << " " << answer.status;
  }
  const std::string runs[] = {"..",          "%2e%2e",      ".",         "%2e",
                              "..%2f" + id_, id_ + "%2f..", id_ + "%00", "/"};
  for (const std::string& run : runs) {
    const Answer answer = Get("/v1/runs/" + run + "/results");
    EXPECT_TRUE(answer.status == 404 || answer.status == 400) << run << " " << answer.status;
    EXPECT_THAT(answer.body, Not(HasSubstr("secret")));
  }
}

TEST_F(ResultsTest, LinksAndOddFilesAreNotFollowed) {
  service_.Finish(id_);
  const fs::path results = folder_.path() / id_ / "results.json";
  std::ofstream(folder_.path() / "secret") << "secret\n";
  fs::remove(results);
  fs::create_symlink(folder_.path() / "secret", results);
  EXPECT_EQ(Get(run_ + "/results").status, 404);
  fs::remove(results);
  ASSERT_EQ(::mkfifo(results.c_str(), 0600), 0);
  EXPECT_EQ(Get(run_ + "/results").status, 404);
  fs::remove(results);
  fs::create_directory(results);
  EXPECT_EQ(Get(run_ + "/results").status, 404);
}

TEST_F(ResultsTest, DamagedSamplesAreAProblemAndNoCrash) {
  service_.Finish(id_);
  for (const char* text :
       {"{\"doc_id\": 0", "[]", "\xff\xfe", "\n\n", "{\"metrics\": [1]}", "{\"arguments\": 3}"}) {
    std::ofstream(folder_.path() / id_ / "samples_sums.jsonl") << text << "\n";
    for (const char* query : {"", "?correct=true"}) {
      const int status = Get(run_ + "/samples/sums" + query).status;
      EXPECT_TRUE(status == 422 || status == 200) << text << " " << status;
    }
  }
  EXPECT_EQ(Get("/healthz").status, 200);
}

std::shared_ptr<const api::RunFile> Open(const fs::path& folder) {
  return std::make_shared<const api::RunFile>(api::OpenRunFile(folder, "samples_t.jsonl"));
}

std::shared_ptr<const api::SampleIndex> Index(api::SampleStore* store,
                                              const std::shared_ptr<const api::RunFile>& file,
                                              const api::SampleQuery& query) {
  std::shared_ptr<const api::SampleIndex> index;
  while (!index) index = store->Index(*file, query);
  return index;
}

Json Page(api::SampleStore* store, const std::shared_ptr<const api::RunFile>& file,
          const api::SampleQuery& query) {
  const auto index = Index(store, file, query);
  api::PiecedText out(file);
  out.Add("[");
  AddPage(*index, *file, query, nullptr, &out);
  out.Add("]");
  return Json::parse(out.Next(64 << 20));
}

// The bytes before a page are not read again, so they may have become anything.
TEST(SampleIndex, PagesDeepInALargeFileCostNoMoreThanTheFirst) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "samples_t.jsonl";
  uint64_t tail = 0;  // beginning of line 99,000
  {
    std::ofstream out(path);
    for (int i = 0; i < 100'000; ++i) {
      if (i == 99'000) tail = static_cast<uint64_t>(out.tellp());
      out << R"({"doc_id":)" << i << R"(,"filter":"none","metrics":["acc"],"acc":)"
          << (i % 1000 == 0 ? 1 : 0) << "}\n";
    }
  }
  const auto file = Open(folder.path());
  api::SampleStore store;
  EXPECT_EQ(Page(&store, file, {"", true, 0, 200}).size(), 100u);
  std::fstream(path, std::ios::in | std::ios::out) << std::string(tail, 'x');
  const Json page = Page(&store, file, {"", std::nullopt, 99'990, 50});
  ASSERT_EQ(page.size(), 10u);
  EXPECT_EQ(page[9]["doc_id"], 99'999);
  const Json right = Page(&store, file, {"", true, 98'001, 200});
  ASSERT_EQ(right.size(), 1u);
  EXPECT_EQ(right[0]["doc_id"], 99'000);
}

// One document with 2,000 answers of 10 kB.
TEST(SampleText, ALongLineIsNotHeld) {
  const TemporaryFolder folder;
  const std::string text = "é\n" + std::string(10'000, 'x');
  Json line = {{"doc_id", 0}, {"doc", Json::object()}, {"target", "t"}};
  line["arguments"]["gen_args_0"] = {{"arg_0", "Q"}, {"arg_1", {{"until", Json::array()}}}};
  line["resps"] = Json::array({std::vector<std::string>(2000, text)});
  line["evald_thinking"] = {{"So...</think>"}};
  line["evald_truncated"] = {{true, false}};
  line["evald_detail"] = {{{"status", "failed"}, {"detail", "failed: AssertionError"}}};
  line["filtered_resps"] = {text};
  line.update({{"filter", "none"}, {"metrics", {"exact_match"}}, {"exact_match", 1.0}});
  std::ofstream(folder.path() / "samples_t.jsonl") << ToLine(line) << "\n";
  const auto file = Open(folder.path());
  api::PiecedText out(file);
  {
    const LittleMemory memory(4 << 20);
    api::SampleStore store;
    const auto index = Index(&store, file, {"none", true, 0, 50});
    EXPECT_EQ(AddPage(*index, *file, {}, nullptr, &out).samples, 1u);
  }
  EXPECT_GT(out.bytes(), 20'000'000u);
  EXPECT_LT(out.parts(), 30u);
  const uint64_t bytes = out.bytes();
  std::string sent;
  for (std::string piece; !(piece = out.Next(64 << 10)).empty(); sent += piece)
    ASSERT_LE(piece.size(), 64u << 10);
  ASSERT_EQ(sent.size(), bytes);
  const Json sample = Json::parse(sent);
  EXPECT_EQ(sample["answers"], line["resps"]);
  EXPECT_EQ(sample["thinking"], line["evald_thinking"]);
  EXPECT_EQ(sample["truncated"], line["evald_truncated"]);
  EXPECT_EQ(sample["detail"], line["evald_detail"]);
  EXPECT_EQ(sample["prompt"], "Q");
  EXPECT_EQ(sample["continuations"], Json::array());
  EXPECT_EQ(sample["scores"], Json({{"exact_match", 1.0}}));
  EXPECT_EQ(sample["correct"], true);
}

// Documents in an order of their own, two filters, a value between right and wrong.
TEST_F(ResultsTest, MarksSayWhichDocumentsAreRight) {
  service_.Finish(id_);
  {
    std::ofstream out(folder_.path() / id_ / "samples_sums.jsonl");
    for (const char* filter : {"strict", "loose"}) {
      for (int i : {4, 7, 9}) {
        const double value = i == 9 ? 0.5 : (i == 4) == (filter[0] == 's') ? 1 : 0;
        out << ToLine({{"doc_id", i}, {"filter", filter}, {"metrics", {"acc"}}, {"acc", value}})
            << "\n";
      }
    }
  }
  const Json all = Parse(Get(run_ + "/marks/sums"));
  EXPECT_EQ(all["filters"], Json({"strict", "loose"}));
  EXPECT_EQ(all["filter"], "strict");
  EXPECT_EQ(all["documents"], Json({4, 7, 9}));
  EXPECT_EQ(all["marks"], "rw-");
  EXPECT_TRUE(all["next"].is_null());
  EXPECT_EQ(Parse(Get(run_ + "/marks/sums?filter=loose"))["marks"], "wr-");
  const Json first = Parse(Get(run_ + "/marks/sums?filter=loose&limit=2"));
  EXPECT_EQ(first["documents"], Json({4, 7}));
  const std::string next = first["next"];
  EXPECT_EQ(Parse(Get(run_ + "/marks/sums?filter=loose&limit=2&cursor=" + next))["documents"],
            Json({9}));
  EXPECT_EQ(Get(run_ + "/marks/none").status, 404);
  EXPECT_EQ(Get(run_ + "/marks/sums?correct=true").status, 400);
}

TEST(SampleText, ReadingEndsWhenNobodyWaits) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "samples_t.jsonl")
      << R"({"doc_id":0,"metrics":[],"resps":")" << std::string(10 << 20, 'x') << "\"}\n";
  const auto file = Open(folder.path());
  api::SampleStore store;
  const auto index = Index(&store, file, {});
  int asked = 0;
  const api::Stopped soon = [&] { return ++asked > 3; };
  api::PiecedText out(file);
  EXPECT_THROW(AddPage(*index, *file, {}, soon, &out), Error);
  EXPECT_EQ(asked, 4);
  EXPECT_THROW(store.Index(*file, {"none", std::nullopt, 0, 50}, [] { return true; }), Error);
}

TEST_F(ResultsTest, ALongSampleComesWhole) {
  service_.Finish(id_);
  const std::string text(1 << 20, 'x');
  std::ofstream(folder_.path() / id_ / "samples_sums.jsonl")
      << R"({"doc_id":7,"metrics":["acc"],"acc":0,"resps":[[")" << text << "\"]]}\n";
  const Answer answer = Get(run_ + "/samples/sums");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(Parse(answer)["samples"][0]["answers"][0][0], text);
  const std::string tag = "If-None-Match: " + answer.headers.at("etag") + "\r\n";
  EXPECT_EQ(Get(run_ + "/samples/sums", tag).status, 304);
  EXPECT_EQ(Get(run_ + "/samples/sums?correct=false", tag).status, 200);
}

// Work on files goes step by step, so that no user waits for the end of another's.
TEST(InBackground, UsersTakeTurnsAndWorkThatNobodyWaitsForEnds) {
  FairThreads files("files", nullptr, {.threads = 1});
  api::Context context;
  context.files = &files;
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  std::promise<int> ended, answered;
  api::InBackground(
      context, "ada",
      http::Responder([&](const http::Response& response) { ended.set_value(response.status); },
                      gone),
      [] { return std::nullopt; });
  api::InBackground(context, "bob", http::Responder([&](const http::Response& response) {
                      answered.set_value(response.status);
                    }),
                    [step = 0]() mutable -> std::optional<http::Response> {
                      if (++step < 100) return std::nullopt;
                      return http::JsonResponse(200, "{}");
                    });
  EXPECT_EQ(answered.get_future().get(), 200);
  *gone = true;
  EXPECT_EQ(ended.get_future().get(), 500) << "dropped unanswered";
}

api::SampleMark MarkOf(std::string_view line) {
  TextInMemory text(line);
  return api::MarkOf(&text, {0, line.size()});
}

TEST(SampleMark, SeesOnlyTheOutermostMembers) {
  const api::SampleMark mark = MarkOf(
      R"({"doc":{"filter":"no","acc":0,"metrics":["no"]},"arguments":[["filter"]],"acc":true,"filter":"yes","metrics":["acc","f1"],"f1":0.5})");
  EXPECT_EQ(mark.filter, "yes");
  EXPECT_EQ(mark.correct, true);
  EXPECT_FALSE(MarkOf(R"({"metrics":["f1"],"f1":0.5})").correct.has_value());
  EXPECT_FALSE(MarkOf(R"({"metrics":["bleu"],"bleu":[1,2]})").correct.has_value());
}

}  // namespace
}  // namespace evald::test
