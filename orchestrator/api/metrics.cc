// /metrics for Prometheus: the service's counters, runs, workers, the HTTP server, webhooks, this
// process. Names follow https://prometheus.io/docs/practices/naming/ (base units; counters end in
// _total).
#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.h"
#include "orchestrator/api/input.h"
#include "orchestrator/api/metrics_text.h"
#include "orchestrator/api/routes.h"

namespace evald::api {
namespace {

const double kStarted = WallSeconds();

std::string MetricName(const std::string& counter) {
  std::string name = "evald_";
  for (const char c : counter) {
    const bool fits =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    name += fits ? c : '_';
  }
  return name.ends_with("_total") ? name : name + "_total";
}

using LauncherNumber = double (*)(const Json& launcher);

// A family with a sample for each launcher; none without launchers.
void LauncherGauge(const Json& launchers, const char* name, const char* help, LauncherNumber number,
                   MetricsText* text) {
  text->Family(name, "gauge", help);
  for (const Json& launcher : launchers)
    text->Sample({{"launcher", launcher.value("name", "")}}, number(launcher));
}

void LauncherPart(const Json& launchers, MetricsText* text) {
  text->Family("evald_launcher_jobs", "gauge", "Jobs of launchers that are not over, by state.");
  for (const Json& launcher : launchers) {
    std::map<std::string, int> states;
    for (const char* state : {"submitting", "submitted", "waiting", "starting", "working", "idle",
                              "away", "unknown", "ending"})
      states[state] = 0;
    for (const Json& job : launcher.at("jobs")) ++states[job.value("state", "unknown")];
    for (const auto& [state, count] : states) {
      text->Sample({{"launcher", launcher.value("name", "")}, {"state", state}}, count);
    }
  }
  LauncherGauge(
      launchers, "evald_launcher_nodes_wanted", "Nodes that launchers are to bring.",
      [](const Json& launcher) { return launcher.at("nodes").value("wanted", 0.0); }, text);
  LauncherGauge(
      launchers, "evald_launcher_nodes_excluded",
      "Nodes that are not asked for, since they failed.",
      [](const Json& launcher) { return static_cast<double>(launcher.at("excluded").size()); },
      text);
  LauncherGauge(
      launchers, "evald_launcher_node_hours", "Node hours used in the last 24 hours.",
      [](const Json& launcher) { return launcher.value("node_hours", 0.0); }, text);
}

void ServicePart(const ServiceView& view, MetricsText* text) {
  for (const auto& [name, value] : view.counters) {
    text->Family(MetricName(name), "counter", "Counted by the service since it began.");
    text->Sample({}, value);
  }
  std::map<std::string, int> states;
  for (const auto& [id, run] : view.active_runs) ++states[run->value("state", "unknown")];
  text->Family("evald_runs", "gauge", "Runs that are not over, by state.");
  for (const char* state : {"queued", "preparing", "running", "paused", "cancelling"})
    states.try_emplace(state, 0);
  for (const auto& [state, count] : states) text->Sample({{"state", state}}, count);
  std::map<std::string, int> workers;
  for (const Json& worker : view.workers) ++workers[worker.value("state", "unknown")];
  for (const char* state : {"idle", "working", "failed"}) workers.try_emplace(state, 0);
  text->Family("evald_workers", "gauge", "Workers by state.");
  for (const auto& [state, count] : workers) text->Sample({{"state", state}}, count);
  double staged_bytes = 0;
  for (const Json& staged : view.staged) staged_bytes += staged.value("bytes", 0.0);
  text->Family("evald_staged_bytes", "gauge", "Checkpoints in shared memory, all hosts together.");
  text->Sample({}, staged_bytes);
  text->Family("evald_staged_checkpoints", "gauge", "Checkpoints in shared memory.");
  text->Sample({}, static_cast<double>(view.staged.size()));
  LauncherPart(view.launchers, text);
  text->Family("evald_ready", "gauge", "1 while the service takes runs.");
  text->Sample({}, view.ready ? 1 : 0);
}

void LoopPart(const LoopTurns& turns, MetricsText* text) {
  text->Family("evald_loop_turn_seconds", "histogram",
               "Turns of the loop that owns all state; heartbeats wait for each.");
  uint64_t below = 0;
  for (size_t i = 0; i < LoopTurns::kBounds.size(); ++i) {
    below += turns.counts[i];
    text->Sample({{"le", fmt::format("{}", LoopTurns::kBounds[i])}}, static_cast<double>(below),
                 "_bucket");
  }
  text->Sample({{"le", "+Inf"}}, static_cast<double>(turns.count), "_bucket");
  text->Sample({}, turns.sum_s, "_sum");
  text->Sample({}, static_cast<double>(turns.count), "_count");
  text->Family("evald_loop_turn_seconds_max", "gauge",
               "The longest turn of the loop in the last minute.");
  text->Sample({}, turns.longest_s);
  text->Family("evald_loop_turn_processor_seconds_max", "gauge",
               "The most processor time that a turn of the loop took in the last minute.");
  text->Sample({}, turns.longest_processor_s);
}

void HttpPart(const http::Statistics& http, MetricsText* text) {
  text->Family("evald_http_requests_total", "counter", "Requests answered.");
  for (const auto& [key, count] : http.requests) {
    text->Sample(
        {{"method", key.method}, {"route", key.route}, {"code", std::to_string(key.status)}},
        static_cast<double>(count));
  }
  text->Family("evald_http_request_duration_seconds", "histogram",
               "From a request's last byte to its answer's.");
  for (const auto& [route, durations] : http.durations) {
    uint64_t below = 0;
    for (size_t i = 0; i < http::Statistics::kBounds.size(); ++i) {
      below += durations.counts[i];
      text->Sample({{"route", route}, {"le", fmt::format("{}", http::Statistics::kBounds[i])}},
                   static_cast<double>(below), "_bucket");
    }
    text->Sample({{"route", route}, {"le", "+Inf"}}, static_cast<double>(durations.count),
                 "_bucket");
    text->Sample({{"route", route}}, durations.sum_s, "_sum");
    text->Sample({{"route", route}}, static_cast<double>(durations.count), "_count");
  }
  const std::tuple<const char*, const char*, const char*, uint64_t> plain[] = {
      {"evald_http_connections", "gauge", "Connections open now.", http.connections},
      {"evald_http_event_streams", "gauge", "Event streams open now.", http.event_streams},
      {"evald_http_connections_total", "counter", "Connections taken or refused.",
       http.connections_total},
      {"evald_http_connections_evicted_total", "counter",
       "Connections closed to make room for others.", http.connections_evicted_total},
      {"evald_http_connections_refused_total", "counter",
       "Connections refused: over the limit, or of another user.", http.connections_refused_total},
      {"evald_http_timeouts_total", "counter", "Connections closed for being slow or silent.",
       http.timeouts_total}};
  for (const auto& [name, type, help, value] : plain) {
    text->Family(name, type, help);
    text->Sample({}, static_cast<double>(value));
  }
}

void WebhookPart(const WebhookStatistics& webhooks, MetricsText* text) {
  text->Family("evald_webhook_deliveries_total", "counter", "Webhook calls by how they ended.");
  text->Sample({{"result", "delivered"}}, static_cast<double>(webhooks.delivered));
  text->Sample({{"result", "failed"}}, static_cast<double>(webhooks.failed));
  text->Sample({{"result", "dropped"}}, static_cast<double>(webhooks.dropped));
  text->Family("evald_webhook_waiting", "gauge", "Webhook calls that wait.");
  text->Sample({}, static_cast<double>(webhooks.waiting));
}

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

int OpenFiles() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int count = -3;  // not counted: ".", ".." and the folder itself
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

void ProcessPart(const std::string& version, MetricsText* text) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  text->Family("process_cpu_seconds_total", "counter", "User and system time.");
  text->Sample({}, seconds(usage.ru_utime) + seconds(usage.ru_stime));
  text->Family("process_resident_memory_bytes", "gauge", "Resident memory.");
  text->Sample({}, ResidentBytes());
  text->Family("process_open_fds", "gauge", "Open file descriptors.");
  text->Sample({}, OpenFiles());
  text->Family("process_start_time_seconds", "gauge", "When the process began, since 1970.");
  text->Sample({}, kStarted);
  text->Family("evald_build_info", "gauge", "1, with the version.");
  text->Sample({{"version", version}}, 1);
}

}  // namespace

void AddMetricsRoutes(http::Router* router, const Context* context) {
  router->Add({"GET", "/metrics", http::Role::kRead,
               [=](const RequestPtr& request, const http::Responder& answer) {
                 QueryReader(*request).Finish();
                 MetricsText text;
                 const auto view = context->service->View();
                 ServicePart(*view, &text);
                 LoopPart(view->loop_turns, &text);
                 HttpPart(context->http_statistics(), &text);
                 WebhookPart(context->webhook_statistics(), &text);
                 ProcessPart(context->options->version, &text);
                 http::Response response;
                 response.headers.Add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
                 response.headers.Add("Cache-Control", "no-store");
                 response.body = text.text();
                 answer(std::move(response));
               }});
}

}  // namespace evald::api
