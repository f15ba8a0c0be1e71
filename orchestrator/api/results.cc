// The files of a run's folder: results, samples, timeline, verdict, report.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "base/hash.h"
#include "base/jsonl.h"
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

constexpr int64_t kMarksMax = 100'000;  // of one answer
constexpr int64_t kCursorMax = 999'999'999'999'999'999;

struct Served {
  const char* path;
  const char* file;
  const char* type;
  const char* missing;  // the reason why the file may be absent
};

constexpr Served kServed[] = {
    {"results", "results.json", "application/json", "a run has results when it is done"},
    {"timeline", "timeline.json", "application/json",
     "a run has a timeline when it is at work or over"},
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

// A timeline while the run is at work; afterwards it is a file.
void AnswerTimeline(const Context& context, const RequestPtr& request, const Responder& answer,
                    const Served& served) {
  const Json run = FindRun(context, *request);
  if (OpenRunFile(DirectoryOf(context, run), served.file).fd)
    return answer(File(context, *request, served));
  QueryReader(*request).Finish();
  const std::string missing =
      fmt::format("{}; this one is {}", served.missing, run.value("state", "unknown"));
  context.service->Timeline(
      run.at("id").get<std::string>(), [answer, missing](Answer<Json> result) {
        const Json* trace = std::get_if<Json>(&result);
        answer(trace != nullptr ? JsonAnswer(200, *trace)
                                : http::ProblemResponse({404, "not-yet", missing}));
      });
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

// A file of samples. `so_far` is null for those of a finished task.
struct SamplesFile {
  std::shared_ptr<const RunFile> file;
  Json so_far;
};

// The samples file of a finished task; its `file` is null if there is none.
SamplesFile OpenSamples(const Context& context, const Json& run, const std::string& task) {
  SamplesFile found;
  auto file = std::make_shared<RunFile>(
      OpenRunFile(DirectoryOf(context, run), fmt::format("samples_{}.jsonl", FolderNameOf(task))));
  if (file->fd) found.file = std::move(file);
  return found;
}

SamplesFile FileOf(const SamplesSoFar& samples) {
  UniqueFd own(::fcntl(samples.file.get(), F_DUPFD_CLOEXEC, 0));
  if (!own) ThrowErrno("samples", "opening", errno);
  return {std::make_shared<RunFile>(RunFileOf(std::move(own))),
          {{"scored", samples.scored}, {"documents", samples.documents}}};
}

ProblemError NoSamplesYet(const Json& run, const std::string& task) {
  const std::string state = run.value("state", "unknown");
  if (run.value("ended", Json()).is_null()) {
    return ProblemError(
        {409, "not-yet",
         fmt::format("no document of the task '{}' is scored yet; the run is {}", task, state)});
  }
  return ProblemError(
      {409, "not-yet",
       fmt::format("the task '{}' was not finished when the run ended ({})", task, state),
       "what is scored is kept: resume the run, and its samples can be read again"});
}

// One request for a page of samples, step by step.
class SamplesWork {
 public:
  SamplesWork(const Context& context, Json run, std::string task, SampleQuery query,
              SamplesFile samples, Responder answer)
      : context_(context),
        run_(std::move(run)),
        task_(std::move(task)),
        query_(std::move(query)),
        file_(std::move(samples.file)),
        so_far_(std::move(samples.so_far)),
        answer_(std::move(answer)) {}

  std::optional<Response> Step() {
    const Stopped stopped = [this] { return !answer_.wanted(); };
    const auto index = context_.samples->Index(*file_, query_, stopped);
    if (!index) return std::nullopt;
    if (query_.marks) return Marks(*index);
    auto text = std::make_shared<PiecedText>(file_);
    text->Add(fmt::format("{{\"run\":{},\"task\":{},\"total\":{},\"so_far\":{},\"samples\":[",
                          ToLine(run_.at("id")), ToLine(Json(task_)), index->lines(),
                          ToLine(so_far_)));
    const SamplePage page = AddPage(*index, *file_, query_, stopped, text.get());
    const Json next = page.next ? Json(std::to_string(*page.next)) : Json();
    text->Add(fmt::format("],\"next\":{}}}\n", ToLine(next)));
    if (text->bytes() <= kWholeBytes) return http::JsonResponse(200, text->Next(kWholeBytes));
    Response response;
    response.headers.Add("Content-Type", "application/json");
    response.headers.Add("ETag", Tag());
    response.pieces = std::move(text);
    return response;
  }

 private:
  static constexpr size_t kWholeBytes = 256 << 10;  // of an answer that is held, and compressed

  Response Marks(const SampleIndex& index) const {
    Json page = MarksPage(index, query_);
    page["run"] = run_.at("id");
    page["task"] = task_;
    page["so_far"] = so_far_;
    return JsonAnswer(200, page);
  }

  std::string Tag() const {
    const char* correct = !query_.correct ? "any" : *query_.correct ? "right" : "wrong";
    return fmt::format("W/\"{}\"",
                       HashHex(fmt::format("{} {} {} {} {}", file_->version, correct, query_.cursor,
                                           query_.limit, query_.filter)));
  }

  const Context& context_;
  const Json run_;
  const std::string task_;
  const SampleQuery query_;
  const std::shared_ptr<const RunFile> file_;
  const Json so_far_;
  const Responder answer_;
};

SampleQuery SamplesAsked(QueryReader* reader) {
  SampleQuery query;
  query.correct = reader->Bool("correct");
  query.limit = static_cast<size_t>(reader->Integer("limit", 1, 200).value_or(50));
  return query;
}

SampleQuery MarksAsked(QueryReader* reader) {
  SampleQuery query;
  query.marks = true;
  query.limit = static_cast<size_t>(reader->Integer("limit", 1, kMarksMax).value_or(kMarksMax));
  return query;
}

void AnswerSamples(const Context& context, const RequestPtr& request, const Responder& answer,
                   SampleQuery (*asked)(QueryReader*)) {
  QueryReader reader(*request);
  SampleQuery query = asked(&reader);
  query.filter = reader.String("filter", 200).value_or("");
  query.cursor = static_cast<uint64_t>(reader.Integer("cursor", 0, kCursorMax).value_or(0));
  reader.Finish();
  const Json run = FindRun(context, *request);
  const std::optional<std::string> task = TaskOf(run, request->parameters.at("task"));
  if (!task) throw ProblemError({404, "not-found", "the run has no such task"});
  const auto work_on = [&context, run, task = *task, query, answer,
                        user = request->principal.name](SamplesFile samples) {
    if (!samples.file) throw NoSamplesYet(run, task);
    const auto work = std::make_shared<SamplesWork>(context, run, task, query, samples, answer);
    InBackground(context, user, answer, [work] { return work->Step(); });
  };
  const SamplesFile finished = OpenSamples(context, run, *task);
  if (finished.file) return work_on(finished);
  // Further pages come from the file of the first.
  const bool renew = query.cursor == 0;
  context.service->Samples(
      run.at("id").get<std::string>(), *task, renew,
      [=, &context, task = *task](Answer<std::shared_ptr<const SamplesSoFar>> result) {
        try {
          const auto* samples = std::get_if<std::shared_ptr<const SamplesSoFar>>(&result);
          if (samples == nullptr) throw std::get<Error>(result);
          // The task may be finished by now.
          work_on(*samples ? FileOf(**samples) : OpenSamples(context, run, task));
        } catch (const std::exception& error) {
          answer(AnswerFor(error));
        }
      });
}

}  // namespace

void AddResultRoutes(http::Router* router, const Context* context) {
  for (const Served& served : kServed) {
    router->Add({"GET", fmt::format("/v1/runs/{{run}}/{}", served.path), Role::kRead,
                 [context, &served](const RequestPtr& request, const Responder& answer) {
                   if (served.path == std::string_view("timeline"))
                     return AnswerTimeline(*context, request, answer, served);
                   answer(File(*context, *request, served));
                 }});
  }
}

void AddSampleRoutes(http::Router* router, const Context* context) {
  router->Add({"GET", "/v1/runs/{run}/samples/{task}", Role::kRead,
               [=](const RequestPtr& request, const Responder& answer) {
                 AnswerSamples(*context, request, answer, SamplesAsked);
               }});
  router->Add({"GET", "/v1/runs/{run}/marks/{task}", Role::kRead,
               [=](const RequestPtr& request, const Responder& answer) {
                 AnswerSamples(*context, request, answer, MarksAsked);
               }});
}

}  // namespace evald::api
