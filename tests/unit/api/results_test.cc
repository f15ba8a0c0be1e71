// Reads from a run's folder, and refusals to read there.
#include <sys/stat.h>

#include <fstream>

#include "api_case.h"
#include "orchestrator/api/samples.h"

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
  EXPECT_EQ(sample["scores"]["exact_match"], 1.0);
  EXPECT_EQ(sample["correct"], true);
  EXPECT_EQ(sample["target"], "20");
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
  const api::RunFile file = api::OpenRunFile(folder.path(), "samples_t.jsonl");
  api::SampleStore store;
  EXPECT_EQ(store.Read(file, {"", true, 0, 200}).samples.size(), 100u);
  std::fstream(path, std::ios::in | std::ios::out) << std::string(tail, 'x');
  const api::SamplePage page = store.Read(file, {"", std::nullopt, 99'990, 50});
  ASSERT_EQ(page.samples.size(), 10u);
  EXPECT_EQ(page.samples[9]["doc_id"], 99'999);
  EXPECT_EQ(page.lines, 100'000u);
  const api::SamplePage right = store.Read(file, {"", true, 98'001, 200});
  ASSERT_EQ(right.samples.size(), 1u);
  EXPECT_EQ(right.samples[0]["doc_id"], 99'000);
}

TEST(SampleMark, SeesOnlyTheOutermostMembers) {
  const api::SampleMark mark = api::MarkOf(
      R"({"doc":{"filter":"no","acc":0,"metrics":["no"]},"arguments":[["filter"]],"acc":true,"filter":"yes","metrics":["acc","f1"],"f1":0.5})");
  EXPECT_EQ(mark.filter, "yes");
  EXPECT_EQ(mark.correct, true);
  EXPECT_FALSE(api::MarkOf(R"({"metrics":["f1"],"f1":0.5})").correct.has_value());
  EXPECT_FALSE(api::MarkOf(R"({"metrics":["bleu"],"bleu":[1,2]})").correct.has_value());
}

}  // namespace
}  // namespace evald::test
