// serve.yaml: keys that are understood, and keys that are refused with their place.
#include "orchestrator/config/serve_config.h"

#include <fmt/format.h>
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

TEST_F(ServeConfigTest, LaunchersBringNodes) {
  const ServeConfig config = Read(
      "agent: {host: login1, listen: '10.0.0.1:7001'}\n"
      "launchers:\n"
      "- slurm: {partition: gpu, nodes: {min: 0, max: 16}, gpus_per_node: 8, time: 2h, idle: "
      "5min,\n"
      "          sbatch: [--account=llm, --qos=low]}\n"
      "- command: {name: pbs, nodes: {max: 2}, start: [bin/start, a b], stop: qdel, list: "
      "[qlist]}\n");
  EXPECT_EQ(config.agent_host, "login1");
  EXPECT_EQ(config.agent_address, "10.0.0.1");
  EXPECT_EQ(config.agent_port, 7001);
  EXPECT_EQ(config.workers.devices, std::vector<std::string>{"none"});  // the nodes compute
  ASSERT_EQ(config.launchers.size(), 2U);
  const LauncherConfig &slurm = config.launchers[0], &pbs = config.launchers[1];
  EXPECT_EQ(slurm.name, "slurm");
  EXPECT_EQ(slurm.nodes_max, 16);
  EXPECT_EQ(slurm.gpus_per_node, 8);
  EXPECT_EQ(slurm.time_s, 7200);
  EXPECT_EQ(slurm.idle_s, 300);
  EXPECT_EQ(slurm.sbatch, (std::vector<std::string>{"--account=llm", "--qos=low"}));
  EXPECT_EQ(pbs.name, "pbs");
  EXPECT_EQ(pbs.start, (std::vector<std::string>{folder_ / "bin/start", "a b"}));
  EXPECT_EQ(pbs.stop, std::vector<std::string>{"qdel"});
  EXPECT_EQ(Read("workers: {devices: [cpu:0]}\nlaunchers: [{slurm: {nodes: {max: 1}}}]\n")
                .workers.devices,
            std::vector<std::string>{"cpu:0"});
}

TEST_F(ServeConfigTest, AWrongLauncherIsNamedByItsKey) {
  const auto problem = [&](const std::string& slurm) {
    return Problem("launchers:\n- slurm: {" + slurm + "}\n");
  };
  EXPECT_THAT(problem("partition: gpu"), HasSubstr("expected {min: 0, max: <nodes>}"));
  EXPECT_THAT(problem("nodes: {min: 3, max: 2}"), HasSubstr("found 3, expected at most 'max', 2"));
  EXPECT_THAT(problem("nodes: {max: 2}, time: 2 hours"),
              HasSubstr("serve.yaml:2: key 'launchers[0].slurm.time': found '2 hours', expected a "
                        "duration such as 30s, 5min, 2h or 1d"));
  EXPECT_THAT(problem("nodes: {max: 2}, time: 90"),
              HasSubstr("found '90', expected a duration with its unit, such as 90min"));
  EXPECT_THAT(problem("nodes: {max: 2}, agent: [--token-file, t]"),
              HasSubstr("'--token-file': evald sets --token-file itself"));
  EXPECT_THAT(problem("nodes: {max: 2}, sbatch: [--array=1-9]"),
              HasSubstr("evald sets --array itself"));
  for (const char* hidden : {"--job-nam=foo", "--arra=0-1", "--wra=touch /tmp/x", "--he"})
    EXPECT_THAT(problem(fmt::format("nodes: {{max: 2}}, sbatch: ['{}']", hidden)),
                HasSubstr("evald sets"));
  for (const char* other : {"-N4", "llm", "--", "-QJfoo"})
    EXPECT_THAT(problem(fmt::format("nodes: {{max: 2}}, sbatch: ['{}']", other)),
                HasSubstr("expected a long option with its value, such as --account=llm"));
  EXPECT_THAT(problem("nodes: {max: 2}, name: a-b"), HasSubstr("letters, digits and '_'"));
  EXPECT_THAT(problem("nodes: {max: 2}, idel: 5min"), HasSubstr("unknown key"));
  EXPECT_THAT(Problem("launchers: [{pbs: {}}]\n"),
              HasSubstr("expected one of 'slurm' and 'command'"));
  EXPECT_THAT(Problem("launchers: [{command: {nodes: {max: 1}, start: a, stop: b}}]\n"),
              HasSubstr("launchers[0].command.list"));
  EXPECT_THAT(Problem("launchers: [{slurm: {nodes: {max: 1}}}, {slurm: {nodes: {max: 1}}}]\n"),
              HasSubstr("two launchers are called 'slurm'"));
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
