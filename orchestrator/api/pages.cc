// The OpenAPI document and the web page's files.
#include "orchestrator/api/input.h"
#include "orchestrator/api/routes.h"

namespace evald {
extern const std::string_view openapi_json;  // docs/openapi.json
}

namespace evald::api {
namespace {

constexpr const char* kPagePolicy =
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'";

http::Response AssetAnswer(const WebAsset& asset) {
  http::Response response;
  response.headers.Add("Content-Type", asset.content_type);
  response.headers.Add("Content-Security-Policy", kPagePolicy);
  response.headers.Add("Referrer-Policy", "no-referrer");
  response.body = asset.bytes;
  return response;
}

}  // namespace

void AddPageRoutes(http::Router* router, const Context* context) {
  router->Add({"GET", "/v1/openapi.json", http::Role::kNone,
               [](const RequestPtr& request, const http::Responder& answer) {
                 QueryReader(*request).Finish();
                 answer(http::JsonResponse(200, std::string(openapi_json)));
               }});
  for (const WebAsset& asset : context->options->assets) {
    router->Add({"GET", asset.path, http::Role::kNone,
                 [&asset](const RequestPtr&, const http::Responder& answer) {
                   answer(AssetAnswer(asset));
                 }});
  }
}

}  // namespace evald::api
