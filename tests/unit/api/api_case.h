#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "memory_service.h"
#include "orchestrator/api/api_server.h"
#include "tests/unit/http_server/socket_client.h"

namespace evald::test {

/// The REST interface over a MemoryService, on loopback.
class ApiCase : public ::testing::Test {
 protected:
  using Answer = http::test::Answer;

  void SetUp() override { Start({}); }
  void Start(ApiOptions options) {
    server_.reset();
    options.watches = &watches_;
    server_ = std::make_unique<ApiServer>(&service_, std::move(options));
  }

  Answer Get(const std::string& target, const std::string& headers = "") {
    return http::test::Fetch(server_->port(), http::test::Ask("GET", target, headers));
  }
  Answer Post(const std::string& target, const std::string& body = "",
              const std::string& headers = "") {
    return http::test::Fetch(server_->port(), http::test::Ask("POST", target, headers, body));
  }
  Answer PostJson(const std::string& target, const std::string& body,
                  const std::string& headers = "") {
    return Post(target, body, "Content-Type: application/json\r\n" + headers);
  }
  static Json Parse(const Answer& answer) { return ParseJson(answer.body, "the answer"); }
  /// Submits a run and returns its id.
  std::string Submit(const std::string& user = "") {
    return Parse(
               PostJson("/v1/runs", R"({"config": {"tasks": ["sums"]}, "user": ")" + user + "\"}"))
        .at("id");
  }

  TemporaryFolder folder_;
  MemoryService service_{folder_.path()};
  MemoryWatches watches_;
  std::unique_ptr<ApiServer> server_;
};

}  // namespace evald::test
