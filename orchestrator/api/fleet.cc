// Workers, hosts, staged checkpoints, the queue; the announcement of a checkpoint.
#include "orchestrator/api/input.h"
#include "orchestrator/api/routes.h"

namespace evald::api {
namespace {

using http::Request;
using http::Responder;
using http::Role;

// Answers with one part of the service's view, under its name.
http::Response Part(const Context& context, const Request& request, const char* name,
                    Json ServiceView::* part) {
  QueryReader(request).Finish();
  return JsonAnswer(200, {{name, (*context.service->View()).*part}});
}

http::Response Queue(const Context& context, const Request& request) {
  QueryReader(request).Finish();
  const auto view = context.service->View();
  Json queue = Json::array();
  for (const std::string& id : view->queue) {
    const auto run = view->active_runs.find(id);
    if (run != view->active_runs.end()) queue.push_back(*run->second);
  }
  return JsonAnswer(200, {{"queue", std::move(queue)}});
}

void Announce(const Context& context, const RequestPtr& request, const Responder& answer) {
  if (MediaType(*request) != "application/json") {
    throw http::ProblemError({415,
                              "media-type",
                              "expected Content-Type application/json",
                              "",
                              "",
                              {{"Accept-Post", "application/json"}}});
  }
  QueryReader(*request).Finish();
  BodyReader body(request->body);
  const std::optional<std::string> path = body.String("path", kPathLengthMax);
  body.Finish();
  if (!path || !std::filesystem::path(*path).is_absolute()) {
    BodyReader::Refuse("/path", "path: expected the absolute path of a checkpoint's folder");
  }
  const auto done = [answer](Answer<Json> result) {
    if (const Error* error = std::get_if<Error>(&result)) {
      http::Problem problem = http::ProblemFor(*error);
      if (problem.status == 409) problem.status = 422, problem.code = "invalid";
      return answer(http::ProblemResponse(problem));
    }
    if (const OverQuota* over = std::get_if<OverQuota>(&result)) return answer(QuotaAnswer(*over));
    answer(JsonAnswer(200, std::get<Json>(result)));
  };
  std::string user;
  SetUser(*request, &user);
  context.service->Announce(*path, user, done);
}

void ReleaseNode(const Context& context, const RequestPtr& request, const Responder& answer) {
  QueryReader(*request).Finish();
  if (!request->body.empty()) BodyReader(request->body).Finish();
  const auto done = [answer](Answer<Json> result) {
    if (const Error* error = std::get_if<Error>(&result)) {
      http::Problem problem = http::ProblemFor(*error);
      if (problem.status == 409) problem.status = 404, problem.code = "not-found";
      return answer(http::ProblemResponse(problem));
    }
    answer(JsonAnswer(200, std::get<Json>(result)));
  };
  context.service->ReleaseNode(request->parameters.at("launcher"), request->parameters.at("node"),
                               done);
}

}  // namespace

void AddFleetRoutes(http::Router* router, const Context* context) {
  const std::tuple<const char*, const char*, Json ServiceView::*> parts[] = {
      {"/v1/workers", "workers", &ServiceView::workers},
      {"/v1/staged", "staged", &ServiceView::staged},
      {"/v1/launchers", "launchers", &ServiceView::launchers}};
  for (const auto& [path, name, part] : parts) {
    router->Add(
        {"GET", path, Role::kRead,
         [context, name = name, part = part](const RequestPtr& request, const Responder& answer) {
           answer(Part(*context, *request, name, part));
         }});
  }
  router->Add(
      {"GET", "/v1/hosts", Role::kRead, [=](const RequestPtr& request, const Responder& answer) {
         QueryReader(*request).Finish();
         const auto view = context->service->View();
         answer(JsonAnswer(200, {{"hosts", view->hosts}, {"refused", view->refused}}));
       }});
  router->Add(
      {"GET", "/v1/queue", Role::kRead, [=](const RequestPtr& request, const Responder& answer) {
         answer(Queue(*context, *request));
       }});
  router->Add({"POST", "/v1/launchers/{launcher}/nodes/{node}/release", Role::kAdmin,
               [=](const RequestPtr& request, const Responder& answer) {
                 ReleaseNode(*context, request, answer);
               },
               8192});
  router->Add({"POST", "/v1/checkpoints", Role::kSubmit,
               [=](const RequestPtr& request, const Responder& answer) {
                 InTurn(*context, request, answer, [=] { Announce(*context, request, answer); });
               },
               8192});
}

}  // namespace evald::api
