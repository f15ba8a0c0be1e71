// Whether the service lives, and whether it takes runs.
#include "orchestrator/api/input.h"
#include "orchestrator/api/routes.h"

namespace evald::api {
namespace {

http::Response NotCached(const Json& value) {
  http::Response response = JsonAnswer(200, value);
  response.headers.Add("Cache-Control", "no-store");
  return response;
}

}  // namespace

void AddHealthRoutes(http::Router* router, const Context* context) {
  router->Add({"GET", "/healthz", http::Role::kNone,
               [=](const RequestPtr& request, const http::Responder& answer) {
                 QueryReader(*request).Finish();
                 answer(NotCached({{"status", "ok"}, {"version", context->options->version}}));
               }});
  router->Add(
      {"GET", "/readyz", http::Role::kNone,
       [=](const RequestPtr& request, const http::Responder& answer) {
         QueryReader(*request).Finish();
         const auto view = context->service->View();
         if (!view || !view->ready) {
           throw http::ProblemError(
               {503, "not-ready", "the service takes no runs now", "", "", {{"Retry-After", "5"}}});
         }
         answer(NotCached({{"status", "ready"}}));
       }});
}

}  // namespace evald::api
