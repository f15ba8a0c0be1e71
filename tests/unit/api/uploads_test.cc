// Files that agents give: in order, no larger than announced and than their kind may be, whole or
// not at all.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "api_case.h"
#include "base/file.h"
#include "base/hash.h"
#include "http_server/problem.h"
#include "orchestrator/api/upload.h"
#include "orchestrator/fleet/agent_files.h"

namespace evald::test {
namespace {

namespace fs = std::filesystem;

class Uploads : public ApiCase {
 protected:
  void SetUp() override {
    files_.Begin("agent");
    files_.Sent(
        "agent", "w0",
        protocol::Lease{7, 1, {{"sums", "/prepared", "", 0, 4, target().string(), {}}}, "r"});
    ApiOptions options;
    options.agent_files = &files_;
    Start(std::move(options));
  }
  fs::path target() { return folder_.path() / "7.1.jsonl"; }
  Answer Put(const std::string& content, uint64_t offset, uint64_t bytes, const std::string& hash) {
    return http::test::Fetch(
        server_->port(),
        http::test::Ask("PUT",
                        fmt::format("/v1/agents/agent/files/{}?file={}&offset={}&bytes={}", hash,
                                    target().string(), offset, bytes),
                        "", content));
  }
  // Sizes of unfinished files on disk: the sum of their lengths, and of the blocks that they take.
  uint64_t LengthOfParts() {
    uint64_t length = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().string().ends_with(".upload")) length += entry.file_size();
    }
    return length;
  }

  AgentFiles files_;
};

TEST_F(Uploads, PiecesInOrderMakeTheFile) {
  const std::string hash = HashHex("one two");
  EXPECT_EQ(Parse(Put("one ", 0, 7, hash)), (Json{{"received", 4}, {"complete", false}}));
  EXPECT_FALSE(fs::exists(target()));
  EXPECT_EQ(Put("ne ", 1, 7, hash).status, 200) << "a piece whose answer was lost is sent again";
  EXPECT_EQ(Parse(Put("two", 4, 7, hash)), (Json{{"received", 7}, {"complete", true}}));
  EXPECT_EQ(ReadFile(target()), "one two");
  EXPECT_EQ(LengthOfParts(), 0u);
  EXPECT_EQ(Put("", 0, 0, HashHex("")).status, 200);
  EXPECT_EQ(ReadFile(target()), "");
}

// Two bytes, at 0 and at 5 GiB - 1, once made the service read 5 GiB into memory.
TEST_F(Uploads, APieceThatLeavesAGapIsRefused) {
  const uint64_t bytes = uint64_t{5} << 30;
  const std::string hash(32, 'a');
  EXPECT_EQ(Put("x", 0, bytes, hash).status, 200);
  const Answer answer = Put("x", bytes - 1, bytes, hash);
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(Parse(answer).at("type"), "urn:evald:problem:piece");
  EXPECT_EQ(LengthOfParts(), 1u);
  EXPECT_EQ(Put("x", 2, bytes, hash).status, 409);
  EXPECT_EQ(Put("x", 1, bytes, hash).status, 200);
}

TEST_F(Uploads, AFileThatIsTooLargeForItsKindIsRefusedAtItsFirstByte) {
  EXPECT_EQ(Put("x", 0, kGenerationsBytesMax + 1, std::string(32, 'a')).status, 413);
  EXPECT_EQ(Put("xy", 0, 1, std::string(32, 'a')).status, 400);
  EXPECT_EQ(LengthOfParts(), 0u);
}

TEST_F(Uploads, WhatIsNotWhatItsHashSaysLeavesNothing) {
  EXPECT_EQ(Put("one", 0, 3, HashHex("two")).status, 422);
  EXPECT_FALSE(fs::exists(target()));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

// One unfinished file of an agent is kept for each file, however many hashes the agent names for
// it.
TEST_F(Uploads, OneUnfinishedFileIsKeptForEach) {
  for (const char digit : {'a', 'b', 'c'})
    EXPECT_EQ(Put("x", 0, 9, std::string(32, digit)).status, 200);
  EXPECT_EQ(LengthOfParts(), 1u);
}

// The last piece was let in before the file was reported, and had to wait.
TEST_F(Uploads, AFileThatIsReportedMeanwhileStaysAsItIs) {
  EXPECT_EQ(Put("one", 0, 3, HashHex("one")).status, 200);
  const protocol::SliceDone done{
      .trial = 7, .attempt = 1, .task = "sums", .file = target().string()};
  api::Upload late{target(),
                   "agent",
                   HashHex("two"),
                   3,
                   10,
                   [&](const auto& give) {
                     return files_.Name("agent", target().string(), give); }};
  EXPECT_FALSE(api::TakePiece(late, 0, "tw"));
  files_.Received("agent", done);
  EXPECT_THROW(api::TakePiece(late, 2, "o"), http::ProblemError);
  EXPECT_EQ(ReadFile(target()), "one");
  EXPECT_EQ(LengthOfParts(), 0u);
}

TEST_F(Uploads, APieceThatComesWhileAnotherIsWrittenIsRefused) {
  const api::Upload upload{target(), "agent", HashHex("xy"), 2, 10};
  EXPECT_FALSE(api::TakePiece(upload, 0, "x"));
  fs::path part;
  for (const auto& entry : fs::directory_iterator(folder_.path())) part = entry.path();
  const UniqueFd other(::open(part.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_THROW(api::TakePiece(upload, 1, "y"), http::ProblemError);
  ASSERT_EQ(::flock(other.get(), LOCK_UN), 0);
  EXPECT_TRUE(api::TakePiece(upload, 1, "y"));
}

}  // namespace
}  // namespace evald::test
