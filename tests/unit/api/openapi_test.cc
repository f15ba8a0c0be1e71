// The document and the routes name the same things.
#include <filesystem>
#include <fstream>
#include <set>

#include "api_case.h"
#include "base/file.h"
#include "orchestrator/api/routes.h"

namespace evald::test {
namespace {

namespace fs = std::filesystem;
using OpenApiTest = ApiCase;

TEST_F(OpenApiTest, IsServedAsItIsInTheRepository) {
  const Answer answer = Get("/v1/openapi.json");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body == ReadFile(fs::path(EVALD_SOURCE_DIR) / "docs/openapi.json"));
}

// A generated client has the keys of eval.yaml with their types.
TEST_F(OpenApiTest, ConfigHasTheKeysOfEvalYaml) {
  const Json document = Parse(Get("/v1/openapi.json"));
  const fs::path file = fs::path(EVALD_SOURCE_DIR) / "docs/eval.schema.json";
  const Json keys = Json::parse(ReadFile(file));
  const Json config = document["components"]["schemas"]["Config"];
  for (const char* member : {"properties", "required", "additionalProperties"})
    EXPECT_EQ(config[member], keys[member])
        << "openapi.json's Config, member " << member << ": expected that of eval.schema.json";
}

TEST_F(OpenApiTest, NamesEachRouteAndNoOther) {
  const Json document = Parse(Get("/v1/openapi.json"));
  EXPECT_EQ(document["openapi"], "3.1.0");
  std::set<std::string> documented, served;
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [method, operation] : item.items()) {
      if (method == "parameters") continue;
      std::string name = method;
      for (char& c : name) c = static_cast<char>(std::toupper(c));
      documented.insert(name + " " + path);
      EXPECT_TRUE(operation.contains("operationId")) << path;
    }
  }
  const ApiOptions options;
  api::Context context;
  context.options = &options;
  http::Router router;
  for (const auto add :
       {api::AddRunRoutes, api::AddEventRoutes, api::AddResultRoutes, api::AddSampleRoutes,
        api::AddFleetRoutes, api::AddWatchRoutes, api::AddLogRoutes, api::AddHealthRoutes,
        api::AddMetricsRoutes, api::AddAgentRoutes, api::AddPageRoutes}) {
    add(&router, &context);
  }
  for (const http::Route& route : router.routes()) {
    std::string path = route.path;  // the document has no form for a parameter of several segments
    if (const size_t dots = path.find("...}"); dots != std::string::npos) path.erase(dots, 3);
    served.insert(route.method + " " + path);
  }
  EXPECT_EQ(documented, served);
}

}  // namespace
}  // namespace evald::test
