// Runs: submit, list, show, cancel, pause, resume, change the priority.
#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "http_server/target.h"
#include "orchestrator/api/input.h"
#include "orchestrator/api/routes.h"

namespace evald::api {
namespace {

using http::ProblemError;
using http::Request;
using http::Responder;
using http::Role;

constexpr uint64_t kNoBodyBytesMax = 64;  // an empty object, with white space
constexpr size_t kTagsMax = 20;
constexpr size_t kTagLengthMax = 50;
constexpr size_t kNoteLengthMax = 2000;
constexpr uint64_t kChangeBytesMax = 16384;
constexpr int64_t kRunCursorMax = 999'999'999'999'999'999;
const std::vector<std::string> kStates = {"queued",     "preparing",  "running",
                                          "paused",     "cancelling", "done",
                                          "incomplete", "failed",     "cancelled"};

std::string IdempotencyKey(const Request& request) {
  const std::string* key = request.headers.Find("Idempotency-Key");
  if (key == nullptr) return "";
  const bool plain =
      std::all_of(key->begin(), key->end(), [](char c) { return c > ' ' && c <= '~'; });
  if (key->empty() || key->size() > kNameLengthMax || !plain) {
    throw ProblemError(
        {400, "invalid-header",
         fmt::format("Idempotency-Key: expected 1 to {} visible ASCII characters", kNameLengthMax),
         "", "header:Idempotency-Key"});
  }
  return *key;
}

// The absolute path in `base`, or "" if it is absent. Throws ProblemError for a relative path.
std::string Base(const std::optional<std::string>& base) {
  if (base && !base->starts_with('/')) {
    throw ProblemError(
        {400, "invalid-base", fmt::format("base: found '{}', expected an absolute path", *base)});
  }
  return base.value_or("");
}

Submission FromQuery(const Request& request) {
  QueryReader query(request);
  Submission submission;
  submission.base = Base(query.String("base", kPathLengthMax));
  submission.user = query.String("user", kNameLengthMax).value_or("");
  submission.priority = static_cast<int>(query.Integer("priority", -100, 100).value_or(0));
  submission.set = query.Strings("set", kOverridesMax, kPathLengthMax);
  query.Finish();
  return submission;
}

// Members of the body win over the query.
void ReadJson(const Request& request, Submission* submission) {
  BodyReader body(request.body);
  const std::optional<Json> config = body.Object("config");
  const std::optional<std::string> yaml = body.String("yaml", kEvalBytesMax);
  if (const auto base = body.String("base", kPathLengthMax)) submission->base = Base(base);
  if (const auto set = body.Strings("set", kOverridesMax, kPathLengthMax)) submission->set = *set;
  submission->file = body.String("file", kPathLengthMax).value_or("");
  if (const auto user = body.String("user", kNameLengthMax)) submission->user = *user;
  if (const auto priority = body.Integer("priority", -100, 100))
    submission->priority = static_cast<int>(*priority);
  body.Finish();
  submission->yaml = EvalText(config, yaml);
}

Submission ReadSubmission(const Request& request) {
  const std::string type = MediaType(request);
  Submission submission = FromQuery(request);
  if (type == "application/json") {
    ReadJson(request, &submission);
  } else if (type == "application/yaml" || type == "application/x-yaml") {
    submission.yaml = request.body;
  } else {
    throw ProblemError(
        {415,
         "media-type",
         fmt::format("Content-Type '{}': expected application/yaml or application/json", type),
         "",
         "",
         {{"Accept-Post", "application/yaml, application/json"}}});
  }
  submission.idempotency_key = IdempotencyKey(request);
  return submission;
}

// An error is a conflict with the run's state: the run was found before.
RunService::Done<Json> AnswerWithRun(const Responder& answer) {
  return [answer](Answer<Json> result) {
    if (const Error* error = std::get_if<Error>(&result))
      return answer(http::ProblemResponse(http::ProblemFor(*error)));
    if (const OverQuota* over = std::get_if<OverQuota>(&result)) return answer(QuotaAnswer(*over));
    answer(JsonAnswer(200, std::get<Json>(result)));
  };
}

void Submit(const Context& context, const RequestPtr& request, const Responder& answer) {
  Submission submission = ReadSubmission(*request);
  SetUser(*request, &submission.user);
  RequirePriority(context, *request, submission.priority);
  context.service->Submit(std::move(submission), [answer](Answer<Submitted> result) {
    if (const Error* error = std::get_if<Error>(&result)) {
      http::Problem problem = http::ProblemFor(*error);
      if (problem.status == 409) problem = {422, "invalid", error->message(), error->remedy()};
      return answer(http::ProblemResponse(problem));
    }
    if (const OverQuota* over = std::get_if<OverQuota>(&result)) return answer(QuotaAnswer(*over));
    const Submitted& submitted = std::get<Submitted>(result);
    http::Response response = JsonAnswer(submitted.created ? 201 : 200, submitted.run);
    response.headers.Add("Location",
                         "/v1/runs/" + http::PercentEncode(submitted.run.value("id", "")));
    answer(std::move(response));
  });
}

http::Response List(const Context& context, const Request& request) {
  QueryReader query(request);
  RunFilter filter;
  filter.state = query.Choice("state", kStates).value_or("");
  filter.user = query.String("user", kNameLengthMax).value_or("");
  filter.name = query.String("name", kPathLengthMax).value_or("");
  filter.checkpoint = query.String("checkpoint", kPathLengthMax).value_or("");
  filter.limit = static_cast<int>(query.Integer("limit", 1, 200).value_or(50));
  filter.before = query.Integer("cursor", 1, kRunCursorMax).value_or(0);
  query.Finish();
  const RunPage page = context.service->Runs(filter);
  Json runs = Json::array();
  for (const Json& run : page.runs) runs.push_back(run);
  return JsonAnswer(200, {{"runs", std::move(runs)},
                          {"next", page.next == 0 ? Json() : Json(std::to_string(page.next))}});
}

LabelChange LabelsIn(BodyReader* body) {
  LabelChange change;
  change.title = body->String("title", kNameLengthMax);
  change.tags = body->Strings("tags", kTagsMax, kTagLengthMax);
  change.note = body->String("note", kNoteLengthMax);
  return change;
}

// Priority and labels are changed one after the other: labels may change when a run is over.
void Change(const Context& context, const RequestPtr& request, const Responder& answer) {
  const std::string type = MediaType(*request);
  if (type != "application/json" && type != "application/merge-patch+json") {
    throw ProblemError({415,
                        "media-type",
                        fmt::format("Content-Type '{}': expected application/json", type),
                        "",
                        "",
                        {{"Accept-Patch", "application/json, application/merge-patch+json"}}});
  }
  QueryReader(*request).Finish();
  BodyReader body(request->body);
  const std::optional<int64_t> priority = body.Integer("priority", -100, 100);
  const LabelChange labels = LabelsIn(&body);
  body.Finish();
  if (!priority && labels.empty()) {
    BodyReader::Refuse(
        "/priority", "expected a priority (an integer from -100 to 100), a title, tags or a note");
  }
  const Json run = FindRun(context, *request);
  RequireOwner(*request, "run", run.value("user", ""));
  if (priority) RequirePriority(context, *request, static_cast<int>(*priority));
  const std::string id = run.at("id");
  const auto label = [service = context.service, id, labels, answer] {
    service->SetLabels(id, labels, AnswerWithRun(answer));
  };
  if (!priority) return label();
  context.service->SetPriority(id, static_cast<int>(*priority),
                               [labels, label, answer](Answer<Json> result) {
                                 if (labels.empty() || !std::holds_alternative<Json>(result))
                                   return AnswerWithRun(answer)(std::move(result));
                                 label();
                               });
}

// Accepts an empty body or an empty object: many clients send an empty object with each POST.
void RequireNoBody(const Request& request) {
  const std::string_view body = Trim(request.body);
  if (body.empty() ||
      (body.front() == '{' && body.back() == '}' && Trim(body.substr(1, body.size() - 2)).empty()))
    return;
  throw ProblemError({400, "body", "expected no body, or an empty JSON object"});
}

void Act(const Context& context, const RequestPtr& request, RunAction action,
         const Responder& answer) {
  RequireNoBody(*request);
  QueryReader(*request).Finish();
  const Json run = FindRun(context, *request);
  RequireOwner(*request, "run", run.value("user", ""));
  context.service->Act(run.at("id").get<std::string>(), action, AnswerWithRun(answer));
}

}  // namespace

void AddRunRoutes(http::Router* router, const Context* context) {
  const auto in_turn = [context](auto handler) {
    return [context, handler](const RequestPtr& request, const Responder& answer) {
      InTurn(*context, request, answer, [=] { handler(*context, request, answer); });
    };
  };
  router->Add({"POST", "/v1/runs", Role::kSubmit, in_turn(Submit), kEvalBytesMax});
  router->Add({"GET", "/v1/runs", Role::kRead,
               in_turn([](const Context& context, const RequestPtr& request,
                          const Responder& answer) { answer(List(context, *request)); })});
  router->Add({"GET", "/v1/runs/{run}", Role::kRead,
               [=](const RequestPtr& request, const Responder& answer) {
                 QueryReader(*request).Finish();
                 answer(JsonAnswer(200, FindRun(*context, *request)));
               }});
  router->Add({"PATCH", "/v1/runs/{run}", Role::kSubmit, in_turn(Change), kChangeBytesMax});
  const std::pair<const char*, RunAction> actions[] = {
      {"cancel", RunAction::kCancel}, {"pause", RunAction::kPause}, {"resume", RunAction::kResume}};
  for (const auto& [name, action] : actions) {
    router->Add({"POST", fmt::format("/v1/runs/{{run}}/{}", name), Role::kSubmit,
                 in_turn([action = action](const Context& context, const RequestPtr& request,
                                           const Responder& answer) {
                   Act(context, request, action, answer);
                 }),
                 kNoBodyBytesMax});
  }
}

}  // namespace evald::api
