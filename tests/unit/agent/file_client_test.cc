// An agent's files from an orchestrator that answers badly for a while.
#include "orchestrator/agent/file_client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "evald/error.h"
#include "tests/unit/checkpoint/checkpoint_files.h"
#include "tests/unit/http_client/scripted_server.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using http_client::test::Answer;
using http_client::test::Script;
using http_client::test::ScriptedServer;
using ::testing::HasSubstr;

constexpr const char* kContent = "0123456789";

class FileClientTest : public ::testing::Test {
 protected:
  // Gives the scripts one after the other, and the last one from then on.
  void Serve(std::vector<Script> scripts) {
    server_ = std::make_unique<ScriptedServer>(
        [scripts, at = std::make_shared<std::atomic<size_t>>(0)](const std::string&) {
          return scripts[std::min((*at)++, scripts.size() - 1)];
        });
  }
  FileClient Connect() { return FileClient({"", server_->url(""), "a-token", ""}, &cancel_); }
  std::string Written() { return ReadFile(path_); }
  ErrorKind KindOf(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.kind();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorKind::kInternal;
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "file";
  const UniqueFd fd_{::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  std::atomic<bool> cancel_{false};
  std::unique_ptr<ScriptedServer> server_;
};

TEST_F(FileClientTest, ARangeThatBreaksIsFetchedAgain) {
  Serve({{"HTTP/1.1 206 Partial\r\nContent-Length: 4\r\n\r\nxx", {}, "", true},
         Answer(503, "", "Retry-After: 0\r\n"),
         Answer(206, "3456")});
  Connect().GetRange("/f", 3, 4, fd_.get());
  EXPECT_EQ(Written(), std::string("\0\0\0", 3) + "3456");
  ASSERT_EQ(server_->requests().size(), 3u);
  for (const std::string& sent : server_->requests()) {
    EXPECT_THAT(sent, HasSubstr("\r\nRange: bytes=3-6\r\n"));
    EXPECT_THAT(sent, HasSubstr("\r\nAuthorization: Bearer a-token\r\n"));
  }
}

TEST_F(FileClientTest, ARangeOfOtherBytesIsRefused) {
  const auto fetch = [&] { Connect().GetRange("/f", 3, 4, fd_.get()); };
  for (const Script& other : {Answer(200, "0123"), Answer(206, "345"), Answer(206, "34567")}) {
    Serve({other});
    EXPECT_EQ(KindOf(fetch), ErrorKind::kInfrastructure);
    EXPECT_EQ(server_->requests().size(), 1u);
  }
}

TEST_F(FileClientTest, AWholeFileIsWrittenAsItComes) {
  Serve({{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcdef", {}, "", true},
         Answer(200, kContent)});
  Connect().GetFile("/f", fd_.get());
  EXPECT_EQ(Written(), kContent);
}

TEST_F(FileClientTest, ARefusalIsKnownFromAFaultThatPasses) {
  const auto put = [&] { Connect().Put("/f", kContent); };
  for (const int status : {400, 403, 404, 413}) {
    Serve({Answer(status, R"({"detail": "no"})")});
    EXPECT_EQ(KindOf(put), ErrorKind::kUsage) << status;
  }
  for (const int status : {408, 409, 422, 429, 503}) {
    Serve({Answer(status, R"({"detail": "not now"})")});
    EXPECT_EQ(KindOf(put), ErrorKind::kInfrastructure) << status;
  }
  EXPECT_TRUE(server_->requests().at(0).ends_with(kContent));
}

TEST_F(FileClientTest, ACancelledClientFailsSoon) {
  Serve({{"", http_client::test::kPatience}});
  cancel_ = true;
  EXPECT_EQ(KindOf([&] { Connect().Get("/f"); }), ErrorKind::kInfrastructure);
}

}  // namespace
}  // namespace evald
