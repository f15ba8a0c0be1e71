// serve.yaml: keys that are understood, and keys that are refused with their place.
#include "orchestrator/config/serve_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ServeConfigTest : public testing::Test {
 protected:
  ServeConfigTest() { std::ofstream(folder_ / "eval.yaml") << "tasks: [gsm8k]\n"; }

  ServeConfig Read(const std::string& text, const std::vector<std::string>& set = {}) const {
    std::ofstream(folder_ / "serve.yaml") << text;
    return ReadServeConfig(folder_ / "serve.yaml", set);
  }

  std::string Problem(const std::string& text) const {
    return CaughtText([&] { Read(text); }, ErrorKind::kUsage);
  }

  TemporaryFolder folder_;
};

TEST_F(ServeConfigTest, JudgesHaveKeysOfTheirOwn) {
  const ServeConfig config =
      Read("judge_urls: ['http://j:1/v1']\njudge_keys: {'http://j:1/v1': J_KEY}\n");
  EXPECT_EQ(config.judge_urls, std::vector<std::string>{"http://j:1/v1"});
  EXPECT_EQ(config.judge_keys.at("http://j:1/v1"), "J_KEY");
  EXPECT_THAT(Problem("engine_urls: ['http://j:1']\njudge_keys: {'http://j:1': J_KEY}\n"),
              HasSubstr("key 'judge_keys': 'http://j:1' is not one of 'judge_urls'"));
}

TEST_F(ServeConfigTest, PathsStartFromItsFolder) {
  const ServeConfig config = Read(
      "listen: '[::1]:9000'\nstate_dir: state\nroots: [models, /data]\nengine_urls: "
      "['http://gpu1:8000']\n"
      "watch: [{checkpoints: run7, eval: eval.yaml, which: every, every: 3, marker: DONE}]\n");
  EXPECT_EQ(config.address, "::1");
  EXPECT_EQ(config.port, 9000);
  EXPECT_EQ(config.state_dir, folder_ / "state");
  EXPECT_EQ(config.output_dir, folder_ / "state" / "runs");
  EXPECT_EQ(config.roots, (std::vector<fs::path>{folder_ / "models", "/data"}));
  EXPECT_EQ(config.engine_urls, std::vector<std::string>{"http://gpu1:8000"});
  ASSERT_EQ(config.watches.size(), 1u);
  EXPECT_EQ(config.watches[0].checkpoints, folder_ / "run7");
  EXPECT_EQ(config.watches[0].every, 3);
}

TEST_F(ServeConfigTest, QuotasOfUsers) {
  const ServeConfig config = Read(
      "quotas: {runs_per_user: 3, unused_runs_per_user: 4, paused_per_user: 0, watches_per_user: "
      "2, "
      "submit_priority: 7}\n");
  EXPECT_EQ(config.runs_per_user_max, 3);
  EXPECT_EQ(config.unused_per_user_max, 4);
  EXPECT_EQ(config.watches_per_user_max, 2);
  EXPECT_EQ(config.paused_per_user_max, 0);
  EXPECT_EQ(config.submit_priority_max, 7);
  EXPECT_EQ(Read("{}\n").watches_per_user_max, 16);
  EXPECT_EQ(Read("{}\n").paused_per_user_max, 8);
}

TEST_F(ServeConfigTest, TheCacheHasALimit) {
  EXPECT_EQ(Read("{}\n").cache_bytes_max, uint64_t{64} << 30);
  EXPECT_EQ(Read("cache_limit: 2 MiB\n").cache_bytes_max, uint64_t{2} << 20);
  EXPECT_THAT(Problem("cache_limit: 1000\n"), HasSubstr("expected at least 1.0 MiB"));
}

TEST_F(ServeConfigTest, AKeyBelongsToAListedServer) {
  const ServeConfig config =
      Read("engine_urls: ['http://gpu1:8000']\nengine_keys: {'http://gpu1:8000': GPU1_KEY}\n");
  EXPECT_EQ(config.engine_keys,
            (std::map<std::string, std::string>{{"http://gpu1:8000", "GPU1_KEY"}}));
  EXPECT_THAT(Problem("engine_keys: {'http://gpu2:8000': K}\n"),
              HasSubstr("'http://gpu2:8000' is not one of 'engine_urls'"));
  EXPECT_THAT(Problem("engine_urls: [a]\nengine_keys: {a: 3}\n"),
              HasSubstr("expected the name of a variable"));
}

TEST_F(ServeConfigTest, EnginesThatStartAServerAreAllowedByName) {
  EXPECT_EQ(Read("allow_engines: [vllm, llama-server]\n").allow_engines,
            (std::vector<std::string>{"vllm", "llama-server"}));
  EXPECT_THAT(Problem("allow_engines: [openai]\n"),
              HasSubstr("found 'openai', expected any of vllm, sglang, llama-server"));
}

TEST_F(ServeConfigTest, AloneItListensOnLoopback) {
  const ServeConfig config = ReadServeConfig("", {"listen=127.0.0.1:0"});
  EXPECT_EQ(config.address, "127.0.0.1");
  EXPECT_EQ(config.port, 0);
  EXPECT_TRUE(config.engine_urls.empty());
  EXPECT_FALSE(config.allow_commands);
  EXPECT_TRUE(config.allow_engines.empty());
  EXPECT_EQ(config.runs_per_user_max, 1000);
  EXPECT_EQ(config.submit_priority_max, 50);
}

TEST_F(ServeConfigTest, MistakesNameLineKeyAndWhatIsExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {"lisen: 1\n", "serve.yaml:1: unknown key 'lisen'; did you mean 'listen'"},
      {"listen: 127.0.0.1:99999\n", "expected address:port"},
      {"active_runs: 0\n", "serve.yaml:1: key 'active_runs'"},
      {"workers: {devices: []}\n",
       "serve.yaml:1: key 'workers.devices': found an empty list, expected auto, cuda:all,"},
      {"tls: {certificate: a.pem}\n", "'tls.key': is absent"},
      {"watch: [{eval: eval.yaml}]\n", "is absent, expected the folder that checkpoints appear in"},
      {"watch: [{checkpoints: a, eval: none.yaml}]\n", "none.yaml: no such file"},
      {"watch: [{checkpoints: a, eval: eval.yaml, which: some}]\n",
       "expected all, newest or every"},
      {"watch: [{checkpoints: a, eval: eval.yaml, every: 2}]\n",
       "goes together with 'which: every'"},
      {"webhooks: [{url: 'ftp://a'}]\n", "expected http://... or https://..."},
  };
  for (const auto& [text, problem] : cases) EXPECT_THAT(Problem(text), HasSubstr(problem)) << text;
}

TEST_F(ServeConfigTest, ALauncherPausesAfterAFailure) {
  const auto with = [](const std::string& more) {
    return "launchers: [{slurm: {nodes: {max: 2}" + more + "}}]\n";
  };
  EXPECT_EQ(Read(with("")).launchers.at(0).retry_s, 60);
  EXPECT_EQ(Read(with(", retry: 5min")).launchers.at(0).retry_s, 300);
  EXPECT_THAT(Problem(with(", retry: 0s")), HasSubstr("retry"));
  EXPECT_THAT(Problem(with(", retry: 1h")), HasSubstr("retry"));
}

TEST(ServeConfig, AFolderThatNoMessageCouldHoldIsRefusedByItsKey) {
  const TemporaryFolder temporary;
  const std::filesystem::path odd = temporary.path() / "caf\xe9";
  std::filesystem::create_directories(odd);
  std::ofstream(odd / "serve.yaml") << "state_dir: state\n";
  EXPECT_THAT(CaughtText([&] { ReadServeConfig(odd / "serve.yaml", {}); }, ErrorKind::kUsage),
              ::testing::HasSubstr("key 'state_dir': the path '"));
}

}  // namespace
}  // namespace evald
