#include "worker/server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "http_client/problem.h"
#include "worker/server/completions.h"

namespace evald::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kProbeTimeout{5000};
constexpr double kOwnPauseMs = 200, kFirstPauseMs = 500, kLongestPauseMs = 5000, kGrowth = 1.5,
                 kJitter = 0.25;
constexpr size_t kTailShown = 1500;
constexpr uint64_t kConfigBytesMax = 16 << 20;

}  // namespace

std::chrono::milliseconds ProbePause(bool own, int asked, double draw) {
  const double grown = kFirstPauseMs * std::pow(kGrowth, std::min(asked, 10));
  const double pause =
      own ? kOwnPauseMs : std::min(grown, kLongestPauseMs) * (1 - kJitter + 2 * kJitter * draw);
  return std::chrono::milliseconds(static_cast<int64_t>(pause));
}

Server::Server(const Options& options, ReadRoots roots)
    : options_(options), roots_(std::move(roots)) {}

http_client::Request Server::Call(const char* method, const std::string& path,
                                  std::chrono::milliseconds timeout) const {
  http_client::Request request;
  request.method = method;
  request.url = url_ + path;
  request.bearer_token = options_.api_key;
  request.limits.connect = options_.connect_timeout;
  request.limits.total = timeout;
  return request;
}

http_client::Response Server::Probe(const std::string& path) {
  return http_.Perform(Call("GET", path, kProbeTimeout));
}

std::string Server::LogTail() const {
  if (!process_) return "";
  std::string tail = process_->LogTail();
  if (tail.size() > kTailShown) tail = "…" + tail.substr(tail.size() - kTailShown);
  return tail.empty() ? "; it printed nothing" : "; its log ends:\n" + tail;
}

void Server::Start(const std::filesystem::path& checkpoint) {
  process_.reset();
  checkpoint_ = checkpoint;
  Launch();
}

void Server::Restart() {
  if (restarts_ >= options_.restarts) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("the server ended ({}) and was started again {} times already{}",
                            process_->ending(), restarts_, LogTail()));
  }
  ++restarts_;
  log::Warn("the server ended ({}); start {} of {}", process_->ending(), restarts_,
            options_.restarts);
  process_.reset();
  Launch();
}

void Server::Launch() {
  url_ = options_.base_url;
  model_ = Expand(options_.model, checkpoint_, 0);
  if (!options_.command.empty()) {
    const int port = FreePort();
    std::vector<std::string> command;
    for (const std::string& word : options_.command)
      command.push_back(Expand(word, checkpoint_, port));
    std::map<std::string, std::string> environment;
    for (const auto& [name, value] : options_.environment) {
      environment[name] = Expand(value, checkpoint_, port);
    }
    url_ = fmt::format("http://127.0.0.1:{}", port);
    process_ = std::make_unique<ServerProcess>(command, environment);
  }
  WaitUntilHealthy();
  max_length_ = options_.max_length;
  AskForModel();
  if (max_length_ == 0) ReadConfig();
}

void Server::WaitUntilHealthy() {
  const Clock::time_point deadline = Clock::now() + options_.ready_timeout;
  std::string why_not;
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int asked = 0; !Healthy(&why_not); ++asked) {
    if (!alive()) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("the server '{}' ended before it was ready ({}){}",
                              options_.command[0], process_->ending(), LogTail()),
                  "run its command by hand to see why");
    }
    if (Clock::now() >= deadline) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{}: not ready after {:.0f} s ({}){}", url_,
                              std::chrono::duration<double>(options_.ready_timeout).count(),
                              why_not, LogTail()),
                  "check that it runs there, or raise ready_seconds");
    }
    std::this_thread::sleep_for(ProbePause(process_ != nullptr, asked, uniform(random_)));
  }
}

bool Server::Healthy(std::string* why_not) {
  const std::string path = options_.health_path.empty() ? "/health" : options_.health_path;
  http_client::Response reply = Probe(path);
  if (options_.health_path.empty() && (reply.status == 404 || reply.status == 405)) {
    reply = Probe("/v1/models");
  }
  *why_not = WhyNot(reply);
  return reply.ok();
}

// /v1/models: {"data": [{"id": ..., "max_model_len": ... (vLLM, SGLang)}, ...]}
void Server::AskForModel() {
  const http_client::Response reply = Probe("/v1/models");
  try {
    const Json models = reply.ok() ? ParseJson(reply.body, url_) : Json();
    const bool listed = models.is_object() && models.contains("data") && models["data"].is_array();
    for (const Json& entry : listed ? models["data"] : Json::array()) {
      if (!entry.is_object() || !entry.contains("id") || !entry["id"].is_string()) continue;
      if (!model_.empty() && entry["id"] != model_) continue;
      model_ = entry["id"].get<std::string>();
      if (max_length_ == 0) max_length_ = FieldOr(entry, "max_model_len", 0, url_);
      break;
    }
  } catch (const Error&) {  // the server lists no model
  }
  if (model_.empty() && !options_.command.empty()) model_ = checkpoint_.string();
  if (model_.empty()) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{}: /v1/models lists no model", url_),
                "name it with `model`");
  }
}

void Server::ReadConfig() {
  try {
    const Json config = ParseJson(
        ReadFolder(checkpoint_, roots_).Read("config.json", kConfigBytesMax), "config.json");
    // The harness's order (lm_eval, resolve_max_length).
    for (const char* key : {"n_positions", "max_position_embeddings"}) {
      if (max_length_ == 0) max_length_ = FieldOr(config, key, 0, "config.json");
    }
  } catch (const Error& e) {
    log::Warn("the context length is not known: {}", e.what());
  }
}

http_client::Request Server::Completion(std::string body, std::chrono::milliseconds timeout) const {
  http_client::Request request = Call("POST", kCompletions, timeout);
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = std::move(body);
  return request;
}

http_client::Response Server::Complete(const Json& body, std::chrono::milliseconds timeout) {
  return http_.Perform(Completion(ToLine(body), timeout));
}

std::string WhyNot(const http_client::Response& reply) {
  if (!reply.answered()) return reply.error;
  if (!reply.location.empty()) return http_client::ProblemOf(reply).detail;
  const std::string text = ErrorText(reply.body);
  return fmt::format("status {}{}", reply.status, text.empty() ? "" : ": " + text);
}

}  // namespace evald::server
