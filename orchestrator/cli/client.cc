#include "orchestrator/cli/client.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "http_client/failure.h"
#include "http_client/problem.h"
#include "http_client/url.h"
#include "orchestrator/cli/event_parser.h"

namespace evald::cli {
namespace {

using http_client::Outcome;
using http_client::Request;
using http_client::Response;
using http_client::RetryPolicy;
using http_client::Url;

constexpr const char* kDefaultServer = "http://127.0.0.1:8642";
constexpr size_t kReplyBytesMax = 1u << 30;
constexpr size_t kRefusalBytesMax = 64u << 10;
constexpr std::chrono::seconds kSilence{60};  // an event stream sends something every 15 s
// The service answers, or closes the connection, within 120 s.
constexpr std::chrono::seconds kAnswer{150};
// A person waits, or a script of his.
constexpr RetryPolicy kPatience{.attempts_max = 4,
                                .first_pause = std::chrono::milliseconds(500),
                                .longest_pause = std::chrono::milliseconds(5000),
                                .longest_retry_after = std::chrono::milliseconds(15'000)};
constexpr RetryPolicy kOnce{.attempts_max = 1};

// The server as it was given, without secrets.
std::string ShownServer(const std::string& server) {
  std::string shown = http_client::Shown(server);
  if (shown.ends_with('/')) shown.pop_back();
  return shown;
}

Url ServiceUrl(const std::string& server) {
  try {
    return http_client::ParseUrl(server);
  } catch (Error& error) {
    throw error.AddContext("--server");
  }
}

const char* RemedyFor(const Response& response) {
  switch (response.outcome) {
    case Outcome::kUntrusted:
      return "--ca-file or EVALD_CA_FILE names the certificates to trust";
    case Outcome::kTooLong:
      return "ask for less at once";
    default:
      return "is 'evald serve' running there? --server or EVALD_SERVER names another";
  }
}

// Throws for a text that is no UTF-8, such as the name of a folder: JSON cannot hold the text, and
// the service would look for another folder.
void RequireText(const Json& body, const std::string& member) {
  if (body.is_string() && !IsUtf8(body.get_ref<const std::string&>())) {
    throw Error(ErrorKind::kUsage,
                fmt::format("what is sent to the service as '{}' is not UTF-8: found '{}'", member,
                            PrintableLine(Shortened(body.get_ref<const std::string&>(), 200))),
                "save files in UTF-8, and name files and folders by paths in UTF-8");
  }
  if (!body.is_structured()) return;
  for (const auto& [key, value] : body.items()) RequireText(value, body.is_object() ? key : member);
}

// A stream that is followed over its connections.
struct Following {
  const EventVisitor& visit;
  EventParser parser;
  std::string last_id;
  bool over = false;  // the visitor returned false

  bool Take(std::string_view bytes) {
    std::vector<EventParser::Message> messages;
    parser.Feed(bytes, &messages);
    for (const EventParser::Message& message : messages) {
      over = !visit(ParseJson(message.data, "an event of the service"));
      if (!message.id.empty()) last_id = message.id;
      if (over) return false;
    }
    return true;
  }
};

}  // namespace

void AddClientFlags(Command command, ClientFlags* flags) {
  command
      .AddOption("--server", &flags->server,
                 fmt::format("The service's URL; else EVALD_SERVER, else {}", kDefaultServer))
      .Metavar("URL");
  command
      .AddOption(
          "--token-file", &flags->token_file,
          "A file that holds a token; else EVALD_TOKEN_FILE, or EVALD_TOKEN, the token itself")
      .Metavar("FILE");
  command
      .AddOption("--ca-file", &flags->ca_file,
                 "Certificates to trust (PEM) instead of the system's; else EVALD_CA_FILE")
      .Metavar("FILE");
}

ClientOptions ReadClientFlags(const ClientFlags& flags) {
  const auto either = [](const std::string& flag, const char* variable) -> std::string {
    const char* value = flag.empty() ? std::getenv(variable) : nullptr;
    return value == nullptr ? flag : value;
  };
  ClientOptions options;
  options.server = either(flags.server, "EVALD_SERVER");
  if (options.server.empty()) options.server = kDefaultServer;
  while (options.server.ends_with('/')) options.server.pop_back();
  const Url url = ServiceUrl(options.server);
  const std::string token_file = either(flags.token_file, "EVALD_TOKEN_FILE");
  options.token = Trim(token_file.empty() ? either("", "EVALD_TOKEN") : ReadFile(token_file));
  if (!options.token.empty() && !url.tls && (!http_client::IsLoopback(url) || url.has_user)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the token would cross the network unencrypted to {}",
                            http_client::Shown(options.server)),
                "use https://…");
  }
  options.ca_file = either(flags.ca_file, "EVALD_CA_FILE");
  return options;
}

Client::Client(ClientOptions options) : options_(std::move(options)) {}

Request Client::Ask(const std::string& method, const std::string& path) const {
  Request request;
  request.method = method;
  request.url = options_.server + path;
  request.bearer_token = options_.token;
  request.ca_file = options_.ca_file;
  request.limits.body_bytes_max = kReplyBytesMax;
  request.limits.silence = kAnswer;
  return request;
}

Response Client::Do(Request request, const RetryPolicy& retry) {
  request.gzip = true;
  Response response = http_.Perform(request, retry);
  if (response.ok()) return response;
  if (response.answered()) Refuse(response);
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: {}", ShownServer(options_.server), response.error),
              RemedyFor(response));
}

void Client::Refuse(const Response& response) const {
  http_client::Problem problem = http_client::ProblemOf(response);
  // In place of the header that the answer names
  if (response.status == 401) problem.remedy = "set EVALD_TOKEN or --token-file";
  const bool usage =
      response.status >= 400 && response.status < 500 && !http_client::IsTemporary(response.status);
  throw Error(usage ? ErrorKind::kUsage : ErrorKind::kInfrastructure,
              fmt::format("{}: {}", ShownServer(options_.server), problem.detail), problem.remedy);
}

Json Client::Get(const std::string& path) {
  return ParseJson(GetText(path), options_.server + path);
}

std::string Client::GetText(const std::string& path) { return Do(Ask("GET", path), kOnce).body; }

Json Client::Post(const std::string& path, const Json& body, const std::string& key) {
  Request request = Ask("POST", path);
  if (!body.is_null()) {
    RequireText(body, "body");
    request.body = ToLine(body);
    request.headers.emplace_back("Content-Type", "application/json");
  }
  if (!key.empty()) request.headers.emplace_back("Idempotency-Key", key);
  return ParseJson(Do(std::move(request), kPatience).body, options_.server + path);
}

Json Client::Delete(const std::string& path) {
  return ParseJson(Do(Ask("DELETE", path), kOnce).body, options_.server + path);
}

void Client::Follow(const std::string& path, const EventVisitor& visit,
                    const std::atomic<bool>* stop, double patience_s) {
  Following following{visit};
  Request request = Ask("GET", path);
  request.limits.silence = kSilence;
  request.limits.body_bytes_max = kRefusalBytesMax;
  request.sink = [&](std::string_view bytes) { return following.Take(bytes); };
  std::mt19937 random{std::random_device{}()};
  int64_t heard_us = MonotonicMicros();
  for (int tries = 1;; ++tries) {
    request.headers = {{"Accept", "text/event-stream"}};
    if (!following.last_id.empty()) request.headers.push_back({"Last-Event-ID", following.last_id});
    following.parser = EventParser();
    const Response response = http_.Perform(request, stop);
    if (following.over || response.outcome == Outcome::kCancelled) return;
    const bool temporary = response.ok() || http_client::IsTemporary(response.status);
    if (response.answered() && !temporary) Refuse(response);
    if (response.status == 200) {
      heard_us = MonotonicMicros();
      tries = 1;
    }
    const double away_s = static_cast<double>(MonotonicMicros() - heard_us) * 1e-6;
    if (away_s > patience_s) {
      const std::string why =
          response.answered() ? http_client::ProblemOf(response).detail : response.error;
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{}: away for {}: {}", http_client::Shown(options_.server),
                              HumanSeconds(away_s), why),
                  "the run goes on with the service; watch it again later");
    }
    const double draw = std::uniform_real_distribution<double>(0, 1)(random);
    const auto pause = http_client::RetryPause(kPatience, tries, response.retry_after_s, draw);
    if (!http_client::Pause(pause, stop)) return;
  }
}

}  // namespace evald::cli
