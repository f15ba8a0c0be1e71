// The files of a run's folder: results, samples, timeline, verdict, report.
#include <fmt/format.h>

#include "base/names.h"
#include "orchestrator/api/input.h"
#include "orchestrator/api/routes.h"
#include "orchestrator/api/run_files.h"
#include "orchestrator/api/samples.h"

namespace evald::api {
namespace {

using http::ProblemError;
using http::Request;
using http::Responder;
using http::Response;
using http::Role;

constexpr int64_t kCursorMax = 999'999'999'999'999'999;

struct Served {
  const char* path;
  const char* file;
  const char* type;
  const char* missing;  // the reason why the file may be absent
};

constexpr Served kServed[] = {
    {"results", "results.json", "application/json", "a run has results when it is done"},
    {"timeline", "timeline.json", "application/json", "a run has a timeline when it is over"},
    {"verdict", "verdict.json", "application/json",
     "a run has a verdict when it is done and has gates"},
    {"report", "report.html", "text/html; charset=utf-8", "a run has a report when it is done"},
};

// A report has its styles inside and no scripts. Text that models wrote stands in it as text.
constexpr const char* kReportPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'";

std::filesystem::path DirectoryOf(const Context& context, const Json& run) {
  const auto directory = context.service->Directory(run.at("id").get<std::string>());
  if (!directory) throw ProblemError({404, "not-found", "the run has no folder"});
  return *directory;
}

Response File(const Context& context, const Request& request, const Served& served) {
  QueryReader(request).Finish();
  const Json run = FindRun(context, request);
  RunFile file = OpenRunFile(DirectoryOf(context, run), served.file);
  if (!file.fd) {
    throw ProblemError(
        {404, "not-yet",
         fmt::format("{}; this one is {}", served.missing, run.value("state", "unknown"))});
  }
  Response response;
  response.headers.Add("Content-Type", served.type);
  response.headers.Add("ETag", fmt::format("W/\"{}\"", file.version));
  if (std::string_view(served.type).starts_with("text/html")) {
    response.headers.Add("Content-Security-Policy", kReportPolicy);
  }
  response.file = std::make_shared<http::FileBody>();
  response.file->fd = std::move(file.fd);
  response.file->bytes = file.bytes;
  return response;
}

// The run's task named `task`; nothing if it has none. The name in the request is only compared:
// file names are made from the run's own names.
std::optional<std::string> TaskOf(const Json& run, const std::string& task) {
  const Json::json_pointer tasks("/progress/tasks");
  if (run.contains(tasks)) {
    for (const Json& entry : run.at(tasks)) {
      if (entry.value("task", "") == task) return entry.value("task", "");
    }
  }
  const auto scores = run.find("scores");
  if (scores != run.end() && scores->is_object() && scores->contains(task)) return task;
  return std::nullopt;
}

Response Samples(const Context& context, const Json& run, const std::string& task,
                 const SampleQuery& query) {
  const RunFile file =
      OpenRunFile(DirectoryOf(context, run), fmt::format("samples_{}.jsonl", FolderNameOf(task)));
  if (!file.fd) {
    throw ProblemError({409, "not-yet",
                        fmt::format("the task '{}' has no samples yet; the run is {}", task,
                                    run.value("state", "unknown"))});
  }
  SamplePage page = context.samples->Read(file, query);
  return JsonAnswer(200, {{"run", run.at("id")},
                          {"task", task},
                          {"total", page.lines},
                          {"samples", std::move(page.samples)},
                          {"next", page.next ? Json(std::to_string(*page.next)) : Json()}});
}

void AnswerSamples(const Context& context, const RequestPtr& request, const Responder& answer) {
  QueryReader reader(*request);
  SampleQuery query;
  query.filter = reader.String("filter", 200).value_or("");
  query.correct = reader.Bool("correct");
  query.limit = static_cast<size_t>(reader.Integer("limit", 1, 200).value_or(50));
  query.cursor = static_cast<uint64_t>(reader.Integer("cursor", 0, kCursorMax).value_or(0));
  reader.Finish();
  const Json run = FindRun(context, *request);
  const std::optional<std::string> task = TaskOf(run, request->parameters.at("task"));
  if (!task) throw ProblemError({404, "not-found", "the run has no such task"});
  InBackground(context, answer,
               [&context, run, task = *task, query] { return Samples(context, run, task, query); });
}

}  // namespace

void AddResultRoutes(http::Router* router, const Context* context) {
  for (const Served& served : kServed) {
    router->Add({"GET", fmt::format("/v1/runs/{{run}}/{}", served.path), Role::kRead,
                 [context, &served](const RequestPtr& request, const Responder& answer) {
                   answer(File(*context, *request, served));
                 }});
  }
}

void AddSampleRoutes(http::Router* router, const Context* context) {
  router->Add({"GET", "/v1/runs/{run}/samples/{task}", Role::kRead,
               [=](const RequestPtr& request, const Responder& answer) {
                 AnswerSamples(*context, request, answer);
               }});
}

}  // namespace evald::api
