// Many followers and many requests beside a run.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "base/jsonl.h"
#include "bench/bench.h"
#include "bench/eval_run.h"
#include "bench/http_load.h"
#include "bench/run_evald.h"
#include "bench/service_process.h"
#include "evald/error.h"

namespace evald::bench {
namespace {

constexpr double kSamplesPerSecond = 500;
constexpr int kConcurrency = 8;
constexpr double kBarMs = 50;
constexpr double kRateRatioLeast = 0.95;

void WriteSuite(const std::filesystem::path& folder, int documents) {
  std::string lines;
  for (int i = 0; i < documents; ++i)
    lines +=
        fmt::format("{{\"question\": \"What is {} plus 1?\", \"answer\": \"{}\"}}\n", i, i + 1);
  WriteText(folder / "tasks" / "sums.jsonl", lines);
  WriteText(folder / "tasks" / "sums.yaml", kSumsTask);
  WriteText(
      folder / "serve.yaml",
      "listen: 127.0.0.1:0\nstate_dir: state\ncache_dir: cache\nworkers: {count: 1, threads: 1}\n"
      "metrics: {processes: 1}\n");
}

class Runs {
 public:
  Runs(const ServiceProcess& service, const std::filesystem::path& base)
      : port_(service.port()), base_(base) {}

  std::string Submit() const {
    const Json config = {{"tasks", {"sums"}},
                         {"task_dirs", {"tasks"}},
                         {"engine",
                          {{"name", "emulated"},
                           {"delay_ms", 1000 * kConcurrency / kSamplesPerSecond},
                           {"concurrency", kConcurrency},
                           {"text", "{doc_id}"}}}};
    const Json run = Parse(HttpRequest(port_, "POST", "/v1/runs",
                                       ToLine({{"config", config}, {"base", base_.string()}})));
    return run.at("id").get<std::string>();
  }

  Json Look(const std::string& run) const {
    return Parse(HttpRequest(port_, "GET", "/v1/runs/" + run));
  }

  /// Waits until the run has generated something.
  void WaitUntilAtWork(const std::string& run) const {
    while (Generated(Look(run)) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }

  static int64_t Generated(const Json& run) {
    return run.at("progress").at("generated").get<int64_t>();
  }

  /// Samples per second from a run's first lease to its last generation, read from its timeline.
  double RateOf(const std::string& run) const {
    Json now = Look(run);
    while (now.at("ended").is_null()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      now = Look(run);
    }
    if (now.at("state") != "done")
      throw Error(ErrorKind::kInfrastructure, "the run ended as " + ToLine(now));
    const Json timeline = Parse(HttpRequest(port_, "GET", "/v1/runs/" + run + "/timeline"));
    double begin = 1e300, end = 0;  // microseconds
    for (const Json& span : SpansOf(timeline, "generate")) {
      begin = std::min(begin, span.at("ts").get<double>());
      end = std::max(end, EndOf(span));
    }
    if (end <= begin) throw Error(ErrorKind::kInternal, "the run's timeline shows no generation");
    return static_cast<double>(Generated(now)) / (end - begin) * 1e6;
  }

 private:
  static Json Parse(const std::string& text) { return ParseJson(text, "the service's answer"); }

  uint16_t port_;
  std::filesystem::path base_;
};

double Quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) throw Error(ErrorKind::kInfrastructure, "no request was answered");
  return sorted[std::min(sorted.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

}  // namespace

// One run alone, then a run of the same size beside the load.
Result RunServe(const Options& options) {
  const double seconds = options.quick ? 3 : 60;
  WriteSuite(options.scratch, static_cast<int>(kSamplesPerSecond * seconds));
  const ServiceProcess service(options.binaries / "evald", options.scratch / "serve.yaml");
  const Runs runs(service, options.scratch);
  const double rate_alone = runs.RateOf(runs.Submit());

  const std::string run = runs.Submit();
  runs.WaitUntilAtWork(run);
  HttpLoad load;
  load.port = service.port();
  load.followers = options.quick ? 50 : 200;
  load.events = "/v1/events";
  load.paths = {"/v1/runs/" + run, "/v1/runs?limit=10", "/v1/workers", "/v1/queue", "/healthz"};
  load.per_second = options.quick ? 200 : 1000;
  load.seconds = seconds * 0.9;  // ends before the run does
  const uint64_t before = service.resident_bytes();
  const double cpu_before = service.cpu_seconds();
  std::future<HttpLoadResult> loading =
      std::async(std::launch::async, [&] { return RunHttpLoad(load); });
  uint64_t peak = before;
  while (loading.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
    peak = std::max(peak, service.resident_bytes());
  }
  const HttpLoadResult found = loading.get();
  const double cpu = service.cpu_seconds() - cpu_before;
  const uint64_t after = service.resident_bytes();
  const double rate_loaded = runs.RateOf(run);

  const auto [least, most] = std::minmax_element(found.events.begin(), found.events.end());
  Json statuses = Json::object();
  for (const auto& [status, count] : found.statuses) statuses[std::to_string(status)] = count;
  Result result;
  result.value = Quantile(found.latencies_s, 0.99) * 1e3;
  result.unit = "ms, p99";
  result.baseline = "the bar";
  result.baseline_value = kBarMs;
  result.smaller_is_better = true;
  result.target = 1.0;
  result.details = {
      {"p50_ms", Quantile(found.latencies_s, 0.5) * 1e3},
      {"max_ms", found.latencies_s.back() * 1e3},
      {"requests", found.latencies_s.size()},
      {"requests_per_second", static_cast<double>(found.latencies_s.size()) / found.seconds},
      {"statuses", statuses},
      {"failed", found.failed},
      {"followers", load.followers},
      {"followers_lost", found.followers_lost},
      {"events_each", {*least, *most}},
      {"run_samples_per_second_alone", rate_alone},
      {"run_samples_per_second", rate_loaded},
      {"run_rate_ratio", rate_loaded / rate_alone},
      {"run_rate_ratio_target", kRateRatioLeast},
      {"resident_bytes_before", before},
      {"resident_bytes_peak", peak},
      {"resident_bytes_after", after},
      {"service_cpu_share", cpu / found.seconds},
      {"load_cpu_share", found.cpu_seconds / found.seconds}};
  return result;
}

}  // namespace evald::bench
