#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "http_server/problem.h"
#include "http_server/router.h"
#include "orchestrator/api/api_server.h"

namespace evald {
class FairThreads;
}

namespace evald::api {

class EventHub;
class SampleStore;

using RequestPtr = std::shared_ptr<const http::Request>;

/// The objects that the endpoints use. Outlives the server.
struct Context {
  RunService* service = nullptr;
  FairThreads* files = nullptr;  ///< read and write files
  FairThreads* turns = nullptr;
  EventHub* hub = nullptr;
  SampleStore* samples = nullptr;
  std::function<http::Statistics()> http_statistics;  ///< server's thread only
  std::function<WebhookStatistics()> webhook_statistics;
  const ApiOptions* options = nullptr;
};

// Each of these adds the endpoints of one subject.
void AddRunRoutes(http::Router* router, const Context* context);
void AddEventRoutes(http::Router* router, const Context* context);
void AddResultRoutes(http::Router* router, const Context* context);
void AddSampleRoutes(http::Router* router, const Context* context);
void AddFleetRoutes(http::Router* router, const Context* context);
void AddWatchRoutes(http::Router* router, const Context* context);
void AddLogRoutes(http::Router* router, const Context* context);
void AddHealthRoutes(http::Router* router, const Context* context);
void AddMetricsRoutes(http::Router* router, const Context* context);
void AddAgentRoutes(http::Router* router, const Context* context);
void AddPageRoutes(http::Router* router, const Context* context);

/// The Run resource that the path names. Throws ProblemError(404).
Json FindRun(const Context& context, const http::Request& request);

/// Work on files, cut into steps of well under a second each. Gives a response after the last step.
using FileWork = std::function<std::optional<http::Response>()>;

/// Does `work` on a thread for files, step by step, and answers with its response, or with its
/// exception as a problem. `user` has one step at work; after it, each other user who waits has
/// one. No step is taken once the answer is not wanted any more. Answers 429 if too much work of
/// the user waits already, and 503 if too much of all does.
void InBackground(const Context& context, const std::string& user, const http::Responder& answer,
                  FileWork work);

/// Calls `work`, which answers by itself, on another thread when it is the caller's turn: one
/// request of a token at a time. A token's waiting requests are bounded. For work that takes the
/// processor long enough to hold up others on the server's thread: parsing bodies, lists of runs.
void InTurn(const Context& context, const RequestPtr& request, const http::Responder& answer,
            std::function<void()> work);

/// Sets *user to the user of the request. If tokens are in force, that is the token's holder; only
/// an admin may name another. Throws ProblemError(403).
void SetUser(const http::Request& request, std::string* user);
/// Throws ProblemError(403) unless the request may change `what` ("run", "watch") of `user`.
void RequireOwner(const http::Request& request, const std::string& what, const std::string& user);

/// Throws ProblemError(403) if the request asks for a higher priority than its role may.
void RequirePriority(const Context& context, const http::Request& request, int64_t priority);

/// 429: the request exceeds a quota.
http::Response QuotaAnswer(const OverQuota& over);

/// `value` as a response.
http::Response JsonAnswer(int status, const Json& value);

/// The problem document for an exception.
http::Response AnswerFor(const std::exception& error);

}  // namespace evald::api
