// Watches: register, list, show, remove.
#include <fmt/format.h>

#include "base/jsonl.h"
#include "http_server/target.h"
#include "orchestrator/api/input.h"
#include "orchestrator/api/routes.h"

namespace evald::api {
namespace {

using http::ProblemError;
using http::Request;
using http::Responder;
using http::Role;

constexpr double kSecondsMax = 86'400;
constexpr double kSubmitPollSeconds = 1;  // the least for the role submit
const std::vector<std::string> kWhich = {"all", "newest", "every"};

WatchRegistry* Registry(const Context& context) {
  if (context.options->watches == nullptr)
    throw ProblemError({404, "not-found", "this service keeps no watches"});
  return context.options->watches;
}

std::string AbsolutePath(const std::optional<std::string>& path, const char* name) {
  if (!path || !path->starts_with('/')) {
    BodyReader::Refuse(fmt::format("/{}", name),
                       fmt::format("{}: expected the absolute path of a folder", name));
  }
  return *path;
}

void ReadEval(BodyReader* body, WatchDefinition* watch) {
  const std::optional<Json> config = body->Object("config");
  const std::optional<std::string> yaml = body->String("yaml", kEvalBytesMax);
  watch->yaml = EvalText(config, yaml);
  if (const auto base = body->String("base", kPathLengthMax))
    watch->base = AbsolutePath(base, "base");
  if (const auto set = body->Strings("set", kOverridesMax, kPathLengthMax)) watch->set = *set;
  watch->file = body->String("file", kPathLengthMax).value_or("");
}

void ReadPolicy(BodyReader* body, WatchDefinition* watch) {
  watch->which = body->Choice("which", kWhich).value_or("all");
  const std::optional<int64_t> every = body->Integer("every", 1, 1'000'000);
  if (every.has_value() != (watch->which == "every")) {
    BodyReader::Refuse("/every",
                       "every: goes together with \"which\": \"every\", and is needed there");
  }
  watch->every = static_cast<int>(every.value_or(1));
  watch->marker = body->String("marker", kNameLengthMax).value_or("");
  if (watch->marker.find('/') != std::string::npos || watch->marker == "." ||
      watch->marker == "..") {
    BodyReader::Refuse("/marker", "marker: expected the name of a file");
  }
  watch->settle_s = body->Number("settle_s", 0, kSecondsMax).value_or(5);
  watch->poll_s = body->Number("poll_s", 0.1, kSecondsMax).value_or(5);
}

WatchDefinition ReadWatch(const Request& request) {
  if (MediaType(request) != "application/json") {
    throw ProblemError({415,
                        "media-type",
                        "expected Content-Type application/json",
                        "",
                        "",
                        {{"Accept-Post", "application/json"}}});
  }
  QueryReader(request).Finish();
  BodyReader body(request.body);
  WatchDefinition watch;
  const std::optional<std::string> checkpoints = body.String("checkpoints", kPathLengthMax);
  ReadEval(&body, &watch);
  ReadPolicy(&body, &watch);
  watch.user = body.String("user", kNameLengthMax).value_or("");
  watch.priority = static_cast<int>(body.Integer("priority", -100, 100).value_or(0));
  body.Finish();
  watch.checkpoints = AbsolutePath(checkpoints, "checkpoints");
  SetUser(request, &watch.user);
  if (request.principal.role == Role::kSubmit && watch.poll_s < kSubmitPollSeconds) {
    BodyReader::Refuse(
        "/poll_s", fmt::format("poll_s: found {:g}, expected at least {:g} from the role submit",
                               watch.poll_s, kSubmitPollSeconds));
  }
  return watch;
}

http::Response RefusalAnswer(const Error& error) {
  http::Problem problem = http::ProblemFor(error);
  if (problem.status == 409) problem.status = 422, problem.code = "invalid";
  return http::ProblemResponse(problem);
}

void Add(const Context& context, const RequestPtr& request, const Responder& answer) {
  WatchRegistry* registry = Registry(context);
  const WatchDefinition watch = ReadWatch(*request);
  RequirePriority(context, *request, watch.priority);
  const auto done = [answer, service = context.service](Answer<RegisteredWatch> result) {
    if (const Error* error = std::get_if<Error>(&result)) return answer(RefusalAnswer(*error));
    if (const OverQuota* over = std::get_if<OverQuota>(&result)) return answer(QuotaAnswer(*over));
    RegisteredWatch& registered = std::get<RegisteredWatch>(result);
    registered.watch["sequence"] = service->View()->sequence;
    http::Response response = JsonAnswer(registered.created ? 201 : 200, registered.watch);
    response.headers.Add("Location",
                         "/v1/watches/" + http::PercentEncode(registered.watch.value("id", "")));
    answer(std::move(response));
  };
  registry->Add(watch, done);
}

http::Response List(const Context& context, const Request& request) {
  QueryReader(request).Finish();
  return JsonAnswer(200, {{"watches", Registry(context)->List()}});
}

Json FindWatch(const Context& context, const Request& request) {
  QueryReader(request).Finish();
  std::optional<Json> watch = Registry(context)->Find(request.parameters.at("watch"));
  if (!watch) throw ProblemError({404, "not-found", "no watch has this id"});
  return std::move(*watch);
}

void Remove(const Context& context, const RequestPtr& request, const Responder& answer) {
  const Json watch = FindWatch(context, *request);
  RequireOwner(*request, "watch", watch.value("user", ""));
  Registry(context)->Remove(watch.value("id", ""), [answer](Answer<Json> result) {
    if (const Error* error = std::get_if<Error>(&result))
      return answer(http::ProblemResponse(http::ProblemFor(*error)));
    answer(JsonAnswer(200, std::get<Json>(result)));
  });
}

}  // namespace

void AddWatchRoutes(http::Router* router, const Context* context) {
  router->Add({"POST", "/v1/watches", Role::kSubmit,
               [=](const RequestPtr& request, const Responder& answer) {
                 InTurn(*context, request, answer, [=] { Add(*context, request, answer); });
               },
               kEvalBytesMax});
  router->Add(
      {"GET", "/v1/watches", Role::kRead, [=](const RequestPtr& request, const Responder& answer) {
         answer(List(*context, *request));
       }});
  router->Add({"GET", "/v1/watches/{watch}", Role::kRead,
               [=](const RequestPtr& request, const Responder& answer) {
                 answer(JsonAnswer(200, FindWatch(*context, *request)));
               }});
  router->Add({"DELETE", "/v1/watches/{watch}", Role::kSubmit,
               [=](const RequestPtr& request, const Responder& answer) {
                 Remove(*context, request, answer);
               }});
}

}  // namespace evald::api
