#include "worker/server/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/jsonl.h"
#include "base/log.h"
#include "base/program.h"
#include "base/text.h"
#include "evald/error.h"
#include "http_client/problem.h"
#include "worker/server/completions.h"
#include "worker/server/plan.h"

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

Server::Server(const std::string& engine, const Options& options, ServerPlace place)
    : engine_(engine), options_(options), place_(std::move(place)), dialect_(MakeDialect(engine)) {}

http_client::Request Server::Call(const char* method, const std::string& path,
                                  std::chrono::milliseconds timeout) const {
  http_client::Request request;
  request.method = method;
  request.url = url_ + path;
  request.unix_socket = socket_;
  request.bearer_token = options_.api_key;
  request.own_server = process_ != nullptr && socket_.empty();
  request.limits.connect = options_.connect_timeout;
  request.limits.total = timeout;
  return request;
}

http_client::Response Server::Probe(const std::string& path) {
  return http_.Perform(Call("GET", path, kProbeTimeout));
}

Caller Server::AsCaller() {
  return [this](const std::string& path, const Json& body, std::chrono::milliseconds timeout) {
    return body.is_null() ? http_.Perform(Call("GET", path, timeout)) : Ask(path, body, timeout);
  };
}

std::string Server::Name(const std::string& path) const {
  return socket_.empty() ? url_ + path : engine_ + ": " + path;
}

std::string Server::LogTail() const {
  if (!process_) return "";
  std::string tail = process_->LogTail();
  if (tail.size() > kTailShown)
    tail = "…" + ReplaceInvalidUtf8(tail.substr(tail.size() - kTailShown));
  std::string line;
  for (const std::string& part : Split(Trim(tail), '\n'))
    line += (line.empty() ? "" : " | ") + std::string(Trim(part));
  return line.empty() ? "; it printed nothing" : "; its log ends: " + line;
}

void Server::Start(const std::filesystem::path& checkpoint) {
  process_.reset();
  restarts_ = 0;
  checkpoint_ = checkpoint;
  ReadShape();
  StartProcess();
}

// A server that cannot exchange its weights needs no shape.
void Server::ReadShape() {
  shape_.reset();
  if (!starts() || !dialect_->WhyNoSwap(true, false).empty()) return;
  try {
    shape_ = ReadCheckpointShape(ReadFolder(checkpoint_, place_.roots));
  } catch (const Error& e) {
    log::Warn("the shape of the checkpoint is not known: {}", e.what());
  }
}

std::string Server::WhyNoSwap(const std::filesystem::path& checkpoint) {
  if (!process_) return "the first checkpoint of this worker";
  if (!process_->running()) return "the server has ended";
  if (!ready_) return "the server did not become ready";
  if (!options_.swap) return "switched off by `swap: false`";
  if (!shape_) return "the shape of the checkpoint before is not known";
  try {
    const CheckpointShape next = ReadCheckpointShape(ReadFolder(checkpoint, place_.roots));
    if (shape_->quantised || next.quantised) return "the weights are quantised";
    const std::string difference = WhyAnotherShape(*shape_, next);
    if (!difference.empty()) return difference;
  } catch (const Error& e) {
    return e.message();
  }
  return dialect_->WhyNoSwap(!place_.gpus.empty(), shape_->tied);
}

void Server::Swap(const std::filesystem::path& checkpoint) {
  dialect_->Swap(AsCaller(), checkpoint, fmt::format("evald-{}", ++swaps_));
  restarts_ = 0;
  checkpoint_ = checkpoint;
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
  ReadShape();
  StartProcess();
}

// Chooses where the server will listen: a socket that only this user reaches, or a port.
void Server::ListenOn(LaunchSetup* setup) {
  if (!dialect_->on_socket()) {
    setup->port = FreePort();
    url_ = fmt::format("http://127.0.0.1:{}", setup->port);
    return;
  }
  if (!sockets_) sockets_.emplace();
  socket_ = setup->socket = sockets_->path() / "server";
  std::filesystem::remove(socket_);  // of a server before, which would not give way
  url_ = "http://localhost";
}

// One line in place of the start's failure, if somebody knows how to install the program.
void Server::RequireProgram(const Launch& launch) const {
  if (dialect_->Install().empty() || !OnPath(launch.command[0]).empty()) return;
  throw Error(ErrorKind::kInput,
              fmt::format("engine '{}': the program '{}' is not {}", engine_, launch.command[0],
                          launch.command[0].find('/') == std::string::npos ? "on PATH" : "there"),
              dialect_->Install() + "; or name it with `command`");
}

void Server::RequireProgram() const {
  if (!starts()) return;
  RequireProgram(dialect_->LaunchOf(options_, LaunchSetup()));
}

void Server::StartProcess() {
  url_ = options_.base_url;
  facts_ = {};
  ready_ = false;
  if (starts()) {
    LaunchSetup setup;
    setup.checkpoint = checkpoint_;
    setup.gpus = place_.gpus;
    setup.threads = place_.threads;
    setup.dtype = !options_.dtype.empty() && options_.dtype != "auto"      ? options_.dtype
                  : shape_ && !shape_->quantised && !shape_->dtype.empty() ? shape_->dtype
                                                                           : "auto";
    ListenOn(&setup);
    const Launch launch = dialect_->LaunchOf(options_, setup);
    RequireProgram(launch);
    program_ = launch.command[0];
    process_ = std::make_unique<ServerProcess>(launch.command, launch.environment);
  }
  WaitUntilHealthy();
  facts_.model = Expand(options_.model, checkpoint_, 0);
  facts_.max_length = options_.max_length;
  AskForModel();
  if (facts_.max_length == 0) ReadConfig();
  dialect_->Learn(AsCaller(), &facts_);
  ready_ = true;
}

void Server::ThrowEnded() {
  const std::string reason = dialect_->Reason(process_->LogTail());
  const bool missing = reason.find("No module named") != std::string::npos;
  const std::string what =
      fmt::format("the server '{}' ended before it was ready ({}){}", program_, process_->ending(),
                  reason.empty() ? LogTail() : ": " + reason);
  if (missing) throw Error(ErrorKind::kInput, what, dialect_->Install());
  const std::string remedy = "run its command by hand to see why";
  // As a shell says that there is no such program, or that it cannot be run
  const bool unusable =
      process_->ending() == "exit status 127" || process_->ending() == "exit status 126";
  if (unusable) throw LastingError(what, remedy);
  throw Error(ErrorKind::kInfrastructure, what, remedy);
}

void Server::WaitUntilHealthy() {
  const Clock::time_point deadline = Clock::now() + options_.ready_timeout;
  std::string why_not;
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int asked = 0; !Healthy(&why_not); ++asked) {
    if (!alive()) ThrowEnded();
    if (Clock::now() >= deadline) {
      const std::string what = fmt::format(
          "{}: not ready after {:.0f} s ({}){}", socket_.empty() ? url_ : engine_,
          std::chrono::duration<double>(options_.ready_timeout).count(), why_not, LogTail());
      // A server that somebody else runs was given all its time.
      if (!process_) throw LastingError(what, "check that it runs there, or raise ready_seconds");
      throw Error(ErrorKind::kInfrastructure, what, "raise ready_seconds if it needs longer");
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
  if (reply.outcome == http_client::Outcome::kUntrusted && process_) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{}: {}", url_, *why_not),
                "see which process took the port; the start is tried again with another port");
  }
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
      if (!facts_.model.empty() && entry["id"] != facts_.model) continue;
      facts_.model = entry["id"].get<std::string>();
      if (facts_.max_length == 0) facts_.max_length = FieldOr(entry, "max_model_len", 0, url_);
      break;
    }
  } catch (const Error&) {  // the server lists no model
  }
  if (facts_.model.empty() && starts()) facts_.model = checkpoint_.string();
  if (facts_.model.empty()) {
    throw Error(ErrorKind::kInfrastructure, Name("/v1/models") + " lists no model",
                "name it with `model`");
  }
}

void Server::ReadConfig() {
  if (checkpoint_.empty()) return;
  try {
    const Json config = ParseJson(
        ReadFolder(checkpoint_, place_.roots).Read("config.json", kConfigBytesMax), "config.json");
    // The harness's order (lm_eval, resolve_max_length).
    for (const char* key : {"n_positions", "max_position_embeddings"}) {
      if (facts_.max_length == 0) facts_.max_length = FieldOr(config, key, 0, "config.json");
    }
  } catch (const Error& e) {
    log::Warn("the context length is not known: {}", e.what());
  }
}

http_client::Request Server::Post(const std::string& path, std::string body,
                                  std::chrono::milliseconds timeout, size_t bytes_max) const {
  http_client::Request request = Call("POST", path, timeout);
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = std::move(body);
  request.limits.body_bytes_max = bytes_max;
  return request;
}

http_client::Response Server::Ask(const std::string& path, const Json& body,
                                  std::chrono::milliseconds timeout) {
  return http_.Perform(Post(path, ToLine(body), timeout, kAnswerBytesMax));
}

std::string WhyNot(const http_client::Response& reply) {
  if (!reply.answered()) return reply.error;
  if (!reply.location.empty()) return http_client::ProblemOf(reply).detail;
  const std::string text = ErrorText(reply.body);
  return fmt::format("status {}{}", reply.status, text.empty() ? "" : ": " + text);
}

}  // namespace evald::server
