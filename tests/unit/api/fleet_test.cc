// Workers, hosts, staged checkpoints, the queue, health, metrics, and the web page's files.
#include "api_case.h"
#include "orchestrator/api/metrics_text.h"

namespace evald::test {
namespace {

using ::testing::HasSubstr;

using FleetTest = ApiCase;

TEST_F(FleetTest, ShowsTheServicesView) {
  Submit();
  EXPECT_EQ(Parse(Get("/v1/workers"))["workers"][0]["id"], "w0");
  EXPECT_EQ(Parse(Get("/v1/hosts"))["hosts"][0]["devices"][0]["worker"], "w0");
  EXPECT_EQ(Parse(Get("/v1/staged"))["staged"][0]["fingerprint"], "ab");
  EXPECT_EQ(Parse(Get("/v1/queue"))["queue"][0]["id"], "run-1");
  EXPECT_EQ(Get("/v1/queue?x=1").status, 400);
}

TEST_F(FleetTest, ShowsLaunchersAndReleasesNodes) {
  const Json launcher = Parse(Get("/v1/launchers"))["launchers"][0];
  EXPECT_EQ(launcher["jobs"][0]["node"], "n2");
  EXPECT_EQ(launcher["excluded"][0]["node"], "n1");
  const Answer released = Post("/v1/launchers/slurm/nodes/n1/release");
  EXPECT_EQ(released.status, 200);
  EXPECT_EQ(Parse(released)["excluded"], Json::array());
  const Answer unknown = Post("/v1/launchers/slurm/nodes/n9/release");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(Parse(unknown)["detail"], "launcher 'slurm' does not exclude node 'n9'");
  EXPECT_EQ(Post("/v1/launchers/slurm/nodes/n1/release?x=1").status, 400);
  EXPECT_EQ(PostJson("/v1/launchers/slurm/nodes/n1/release", "{}").status, 200);
  EXPECT_EQ(PostJson("/v1/launchers/slurm/nodes/n1/release", R"({"x": 1})").status, 400);
}

TEST_F(FleetTest, TakesAnnouncements) {
  EXPECT_EQ(Parse(PostJson("/v1/checkpoints", R"({"path": "/models/a"})"))["checkpoint"],
            "/models/a");
  EXPECT_EQ(PostJson("/v1/checkpoints", R"({"path": "models/a"})").status, 400);
  EXPECT_EQ(PostJson("/v1/checkpoints", R"({})").status, 400);
  EXPECT_EQ(PostJson("/v1/checkpoints", R"({"path": "/a", "x": 1})").status, 400);
  EXPECT_EQ(Post("/v1/checkpoints", R"({"path": "/a"})").status, 415);
}

TEST_F(FleetTest, TellsHealthAndReadiness) {
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/readyz").status, 200);
  service_.SetReady(false);
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/readyz").status, 503);
}

TEST_F(FleetTest, GivesMetrics) {
  Submit();
  Get("/v1/runs/run-1");
  const Answer answer = Get("/metrics");
  EXPECT_EQ(answer.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line :
       {"evald_documents_generated_total 7\n", "evald_runs{state=\"queued\"} 1\n",
        "evald_workers{state=\"idle\"} 1\n", "evald_staged_bytes 10\n", "evald_ready 1\n",
        "evald_launcher_jobs{launcher=\"slurm\",state=\"waiting\"} 1\n",
        "evald_launcher_jobs{launcher=\"slurm\",state=\"away\"} 0\n",
        "evald_launcher_nodes_wanted{launcher=\"slurm\"} 2\n",
        "evald_launcher_nodes_excluded{launcher=\"slurm\"} 1\n",
        "evald_launcher_node_hours{launcher=\"slurm\"} 1.5\n",
        "evald_http_requests_total{method=\"GET\",route=\"/v1/runs/{run}\",code=\"200\"} 1\n",
        "evald_http_request_duration_seconds_count{route=\"/v1/runs/{run}\"} 1\n",
        "evald_http_request_duration_seconds_bucket{route=\"/v1/runs/{run}\",le=\"+Inf\"} 1\n",
        "# TYPE process_resident_memory_bytes gauge\n"}) {
    EXPECT_THAT(answer.body, HasSubstr(line));
  }
}

TEST(MetricsText, EscapesLabels) {
  api::MetricsText text;
  text.Family("a_total", "counter", "Help.");
  text.Sample({{"x", "a\"b\\c\nd"}}, 1.5);
  EXPECT_EQ(text.text(),
            "# HELP a_total Help.\n# TYPE a_total counter\na_total{x=\"a\\\"b\\\\c\\nd\"} 1.5\n");
}

TEST_F(FleetTest, ServesThePageAndNothingBesideIt) {
  ApiOptions options;
  options.assets = {{"/", "text/html; charset=utf-8", "<!doctype html>"},
                    {"/assets/app.js", "text/javascript", "run();"}};
  Start(std::move(options));
  const Answer page = Get("/");
  EXPECT_EQ(page.body, "<!doctype html>");
  EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("default-src 'self'"));
  EXPECT_EQ(page.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(Get("/assets/app.js").body, "run();");
  EXPECT_EQ(Get("/assets/other.js").status, 404);
  EXPECT_EQ(Get("/assets/../v1/runs").status, 400);
}

}  // namespace
}  // namespace evald::test
