// Names, settings and waits of the hub that need no server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "../support/caught.h"
#include "../support/temporary_folder.h"
#include "fetch/caller.h"
#include "fetch/hub.h"
#include "fetch/hub_settings.h"

namespace evald::fetch {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(HubNames, PathsStayInTheirFolder) {
  for (const char* path :
       {"a", "data/test-00000-of-00001.parquet", "a..b/..c", "größe.jsonl", ".x"})
    EXPECT_EQ(WrongWithPath(path), "") << path;
  for (const char* path :
       {"", "/a", "..", "a/..", "../a", "a//b", "./a", "a/", "a\\b", "a\nb", "a\x7f", "\xff"}) {
    EXPECT_NE(WrongWithPath(path), "") << path;
  }
  EXPECT_NE(WrongWithPath(std::string("a\0b", 3)), "");
  EXPECT_NE(WrongWithPath(std::string(2000, 'a')), "");
}

TEST(HubNames, RepositoriesAreOwnerAndName) {
  for (const char* name : {"openai/gsm8k", "wikitext", "a.b/c_d-e"})
    EXPECT_NO_THROW(RequireRepositoryName(name)) << name;
  for (const char* name : {"", "a/b/c", "../a", "a/..", "a/", "/a", "a b", "a/b?x", "a/b#x",
                           "a/b%2e", "https://x", "-a/b"}) {
    EXPECT_THROW(RequireRepositoryName(name), Error) << name;
  }
}

TEST(HubWaits, AreThoseTheServerAsksFor) {
  http_client::Response response;
  response.status = 429;
  EXPECT_EQ(WaitAskedFor(response), 0);
  response.fields["ratelimit"] = "\"api\";r=0;t=55";
  EXPECT_EQ(WaitAskedFor(response), 56);
  response.retry_after_s = 7;
  EXPECT_EQ(WaitAskedFor(response), 7);
  response.retry_after_s = 0;
  response.status = 503;
  EXPECT_EQ(WaitAskedFor(response), 0);
}

class HubEnvironment : public testing::Test {
 protected:
  HubEnvironment() {
    for (const char* name : {"HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH"})
      ::unsetenv(name);
    ::setenv("HF_HOME", folder_.path().c_str(), 1);
  }
  TemporaryFolder folder_;
};

TEST_F(HubEnvironment, TheEndpointIsTheNearest) {
  EXPECT_EQ(HubEndpoint(""), "https://huggingface.co");
  ::setenv("HF_ENDPOINT", "https://mirror.example/hf/", 1);
  EXPECT_EQ(HubEndpoint(""), "https://mirror.example/hf");
  EXPECT_EQ(HubEndpoint("http://localhost:1"), "http://localhost:1");
  EXPECT_THAT(CaughtText([] { HubEndpoint("ftp://x"); }, ErrorKind::kUsage),
              HasSubstr("--endpoint: 'ftp://x'"));
  EXPECT_THAT(CaughtText([] { HubEndpoint("https://x?a"); }, ErrorKind::kUsage),
              HasSubstr("a query"));
  ::unsetenv("HF_ENDPOINT");
}

TEST_F(HubEnvironment, TheTokenIsTheNearest) {
  EXPECT_EQ(HubToken(), "");
  folder_.Write("token", "hf_file\n");
  EXPECT_EQ(HubToken(), "hf_file");
  ::setenv("HF_TOKEN_PATH", folder_.Write("other", " hf_other ").c_str(), 1);
  EXPECT_EQ(HubToken(), "hf_other");
  ::setenv("HUGGING_FACE_HUB_TOKEN", "hf_old", 1);
  EXPECT_EQ(HubToken(), "hf_old");
  ::setenv("HF_TOKEN", "hf_new", 1);
  EXPECT_EQ(HubToken(), "hf_new");
  ::setenv("HF_TOKEN", "hf_a\nX: y", 1);
  const std::string error = CaughtText([] { HubToken(); }, ErrorKind::kUsage);
  EXPECT_THAT(error, HasSubstr("HF_TOKEN: the token has"));
  EXPECT_THAT(error, Not(HasSubstr("hf_a")));
  ::unsetenv("HF_TOKEN");
  ::unsetenv("HUGGING_FACE_HUB_TOKEN");
  ::unsetenv("HF_TOKEN_PATH");
}

}  // namespace
}  // namespace evald::fetch
