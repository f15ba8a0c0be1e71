// One file from a server that answers well, badly or only in part.
#include "fetch/download.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/caught.h"
#include "../support/temporary_folder.h"
#include "base/file.h"
#include "base/hash.h"
#include "fetch/content_hash.h"
#include "fetch/downloads.h"
#include "scripted_server.h"

namespace evald::fetch {
namespace {

using http_client::test::Answer;
using http_client::test::Script;
using http_client::test::ScriptedServer;
using testing::HasSubstr;
using testing::Not;

const std::string kContent = "0123456789";

class DownloadTest : public testing::Test {
 protected:
  DownloadTest() {
    access_.retry.first_pause = std::chrono::microseconds(1);
    access_.retry.longest_pause = std::chrono::microseconds(10);
  }

  Downloaded Get(const ScriptedServer& server, const Source& known = {}) {
    Source source = known;
    source.url = server.url("/file");
    access_.endpoint = server.url("");
    Caller caller(access_);
    return Download(source, target_, &caller);
  }

  // What an earlier call has left.
  void Leave(const ScriptedServer& server, const std::string& bytes,
             const std::string& etag) const {
    folder_.Write("file.part", bytes);
    folder_.Write("file.part.json",
                  R"({"url":")" + server.url("/file") + R"(","etag":)" + etag + "}\n");
  }

  TemporaryFolder folder_;
  Access access_;
  const std::filesystem::path target_ = folder_ / "file";
};

Script Part(const std::string& etag = "\"a\"") {
  return Answer(206, "56789", "Content-Range: bytes 5-9/10\r\nETag: " + etag + "\r\n");
}

TEST_F(DownloadTest, AFileIsThereWholeAndWithItsHash) {
  ScriptedServer server([](const std::string&) { return Answer(200, kContent); });
  const Downloaded got = Get(server);
  EXPECT_EQ(ReadFile(target_), kContent);
  EXPECT_EQ(got.bytes, 10u);
  EXPECT_EQ(got.fetched, 10u);
  EXPECT_EQ(got.sha256, Sha256Hex(kContent));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "file.part"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "file.part.json"));
}

TEST_F(DownloadTest, ALaterCallContinuesTheSameFile) {
  ScriptedServer server([](const std::string&) { return Part(); });
  Leave(server, "01234", R"("\"a\"")");
  EXPECT_EQ(Get(server).fetched, 5u);
  EXPECT_EQ(ReadFile(target_), kContent);
  EXPECT_THAT(server.requests().at(0), HasSubstr("Range: bytes=5-\r\n"));
  EXPECT_THAT(server.requests().at(0), HasSubstr("If-Range: \"a\"\r\n"));
}

TEST_F(DownloadTest, AFileThatWasReplacedMeanwhileBeginsAnew) {
  ScriptedServer server(
      [](const std::string&) { return Answer(200, "abcdefghij", "ETag: \"b\"\r\n"); });
  Leave(server, "01234", R"("\"a\"")");
  EXPECT_EQ(Get(server).fetched, 10u);
  EXPECT_EQ(ReadFile(target_), "abcdefghij");
}

TEST_F(DownloadTest, BytesOfWhichNobodyCanSayWhoseTheyAreAreDropped) {
  ScriptedServer server([](const std::string& request) {
    return request.find("Range:") == std::string::npos ? Answer(200, kContent) : Part();
  });
  for (const char* etag : {R"("")", R"("W/\"a\"")"}) {
    Leave(server, "xxxxx", etag);
    EXPECT_EQ(Get(server).fetched, 10u);
    EXPECT_EQ(ReadFile(target_), kContent);
  }
  folder_.Write("file.part", "xxxxx");
  folder_.Write("file.part.json", "{");
  EXPECT_EQ(Get(server).fetched, 10u);
}

TEST_F(DownloadTest, AKnownHashShowsThatTheFirstBytesWereOthers) {
  ScriptedServer server([](const std::string& request) {
    return request.find("Range:") == std::string::npos ? Answer(200, kContent) : Part();
  });
  Leave(server, "xxxxx", R"("")");
  Source source;
  source.sha256 = Sha256Hex(kContent);
  EXPECT_EQ(Get(server, source).fetched, 15u);
  EXPECT_EQ(ReadFile(target_), kContent);
}

TEST_F(DownloadTest, APartThatIsLongerThanTheFileBeginsAnew) {
  ScriptedServer server([](const std::string& request) {
    return request.find("Range:") == std::string::npos ? Answer(200, kContent) : Answer(416, "");
  });
  Leave(server, "0123456789xyz", R"("\"a\"")");
  Get(server);
  EXPECT_EQ(ReadFile(target_), kContent);
}

TEST_F(DownloadTest, AConnectionThatBreaksIsContinued) {
  std::atomic<int> calls{0};
  ScriptedServer server([&](const std::string&) {
    if (++calls > 1) return Part();
    Script cut{"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n01234"};
    cut.close = true;
    return cut;
  });
  EXPECT_EQ(Get(server).fetched, 10u);
  EXPECT_EQ(ReadFile(target_), kContent);
  EXPECT_EQ(calls, 2);
}

TEST_F(DownloadTest, WrongAnswersAreNamedAndLeaveNoFile) {
  Script answer;
  ScriptedServer server([&](const std::string&) { return answer; });
  const auto refusal = [&](Script script, const Source& source = {}) {
    answer = std::move(script);
    std::string text = CaughtText([&] { Get(server, source); }, ErrorKind::kInput);
    EXPECT_FALSE(std::filesystem::exists(target_));
    return text;
  };
  Source source;
  source.bytes = 10;
  EXPECT_THAT(refusal(Answer(200, "01234567"), source),
              HasSubstr("expected 10 bytes, the server has 8"));
  source.sha256 = std::string(64, '0');
  EXPECT_THAT(
      refusal(Answer(200, kContent), source),
      HasSubstr("expected the SHA-256 " + source.sha256 + ", found " + Sha256Hex(kContent)));
  EXPECT_THAT(refusal(Answer(200, kContent, "Content-Type: text/html; charset=utf-8\r\n")),
              HasSubstr("a web page (text/html) in place of the file"));
  EXPECT_THAT(refusal(Answer(404, "")), HasSubstr("/file: status 404"));
  EXPECT_THAT(refusal(Answer(403, "")), HasSubstr("HF_TOKEN"));
  Leave(server, "01234", R"("\"a\"")");
  EXPECT_THAT(refusal(Answer(206, "x", "Content-Range: bytes 3-9/10\r\n")),
              HasSubstr("bytes from 5 on were asked for"));
}

TEST_F(DownloadTest, ARedirectToAnotherHostGetsNoToken) {
  ScriptedServer other([](const std::string&) { return Answer(200, kContent); });
  ScriptedServer server([&](const std::string& request) {
    if (request.starts_with("GET /file ")) return Answer(302, "", "Location: /here\r\n");
    return Answer(302, "", "Location: " + other.url("/there?signature=x") + "\r\n");
  });
  access_.token = "hf_secret";
  Get(server);
  EXPECT_EQ(ReadFile(target_), kContent);
  ASSERT_EQ(server.requests().size(), 2u);
  for (const std::string& request : server.requests())
    EXPECT_THAT(request, HasSubstr("Authorization: Bearer hf_secret\r\n"));
  EXPECT_THAT(other.requests().at(0), Not(HasSubstr("hf_secret")));
}

TEST_F(DownloadTest, RedirectsHaveAnEnd) {
  ScriptedServer server([](const std::string&) { return Answer(302, "", "Location: /file\r\n"); });
  EXPECT_THAT(CaughtText([&] { Get(server); }), HasSubstr("more than 5 redirects"));
  EXPECT_EQ(server.requests().size(), 6u);
}

TEST_F(DownloadTest, AFailureStopsNoOtherFile) {
  ScriptedServer server([](const std::string& request) {
    return request.starts_with("GET /b ") ? Answer(404, "") : Answer(200, kContent);
  });
  access_.endpoint = server.url("");
  std::vector<Job> jobs(3);
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].source.url = server.url("/" + std::string(1, static_cast<char>('a' + i)));
    jobs[i].source.bytes = 10;
    jobs[i].target = folder_ / std::to_string(i);
  }
  EXPECT_EQ(BytesToWrite(jobs), 30u);
  DownloadProgress progress;
  const std::vector<JobEnd> ends = DownloadAll(jobs, 2, access_, &progress);
  EXPECT_TRUE(ends[0].downloaded && ends[2].downloaded);
  EXPECT_TRUE(ends[1].failure);
  EXPECT_EQ(progress.bytes, 20);
  EXPECT_EQ(progress.files, 3);
  EXPECT_EQ(progress.bytes_total, 30);
}

TEST(Room, IsAskedForBeforehand) {
  const TemporaryFolder folder;
  RequireRoom(folder / "not/yet", 1);
  const Error error = Caught([&] { RequireRoom(folder / "not/yet", uint64_t{1} << 60); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.what(), HasSubstr("its file system has"));
}

// The hashes are those of `git hash-object`.
TEST(GitBlob, IsWhatGitCallsTheContent) {
  const TemporaryFolder folder;
  const auto hash = [&](const std::string& text) {
    const auto path = folder.Write("x", text);
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return GitBlobOfFile(fd.get(), path);
  };
  EXPECT_EQ(hash(""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(hash("hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
}

}  // namespace
}  // namespace evald::fetch
