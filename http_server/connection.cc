#include "http_server/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "http_server/await.h"
#include "http_server/event_stream.h"
#include "http_server/problem.h"
#include "http_server/tunnel.h"

namespace evald::http {
namespace {

namespace asio = boost::asio;

constexpr size_t kLingerBytesMax = 1 << 20;
constexpr std::chrono::milliseconds kLinger{1000};
constexpr std::chrono::milliseconds kTurnAway{2000};  // for a refused caller to send a request

constexpr size_t kKeptForRequests = 64;  // connections of one address that are kept for requests

size_t CountOf(const std::map<std::string, size_t>& counts, const std::string& of) {
  const auto found = counts.find(of);
  return found == counts.end() ? 0 : found->second;
}

// Whether one more event stream may be opened. Each stream keeps a connection. Readers must not use
// up all connections of an address, which all users of a tunnel share, nor all connections of the
// service.
bool MayFollow(const Shared& shared, const std::string& follower, const std::string& client) {
  const ServerOptions& options = shared.options;
  if (options.tokens.empty()) return true;
  const auto taken = [](size_t open, size_t all) {
    return open + std::min(kKeptForRequests, all / 2) >= all;
  };
  return !taken(shared.statistics.event_streams, options.connections_max) &&
         !taken(CountOf(shared.streams_from, client), options.connections_per_client_max) &&
         CountOf(shared.streams, follower) < options.streams_per_token_max;
}

}  // namespace

Connection::Connection(std::shared_ptr<Shared> shared, ByteStream::Socket socket,
                       std::string client, asio::ssl::context* tls)
    : shared_(std::move(shared)),
      client_(std::move(client)),
      stream_(std::move(socket), tls),
      parser_(shared_->options.request),
      signal_(shared_->context, Clock::time_point::max()) {
  ++shared_->statistics.connections;
  Deadline(shared_->options.time.handshake);
}

Connection::~Connection() { --shared_->statistics.connections; }

Response Connection::ProblemAnswer(const Problem& problem) const {
  return shared_->options.problem_answer(problem);
}

Response Connection::AnswerForException(const std::exception& error, const Request& request) const {
  if (const auto* problem = dynamic_cast<const ProblemError*>(&error))
    return ProblemAnswer(problem->problem());
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known == nullptr || known->kind() == ErrorKind::kInternal) {
    log::Error("http: {} {}: {}", request.method, request.route, error.what());
  }
  if (known != nullptr) return ProblemAnswer(ProblemFor(*known));
  return ProblemAnswer({500, "internal", "an internal error; the service's log says more"});
}

Response Connection::TooManyStreams() const {
  return ProblemAnswer(
      {429,
       "streams",
       fmt::format("too many event streams are open: {} of one token, or all of one address",
                   shared_->options.streams_per_token_max),
       "close some, or follow all runs with one stream",
       "",
       {{"Retry-After", "1"}}});
}

void Connection::Expire(Clock::time_point now) {
  if (gone_) return;
  if (now >= deadline_) {
    ++shared_->statistics.timeouts_total;
    Close();
  } else if (unwanted_ && stream_.PeerHasEnded()) {
    *unwanted_ = true;  // it may still read: an answer that comes all the same is sent
  }
}

void Connection::WindDown() {
  if (idle_ || streaming_) Close();
}

void Connection::Close() {
  gone_ = true;
  if (unwanted_) *unwanted_ = true;
  stream_.Close();
  signal_.cancel();
}

asio::awaitable<void> Connection::Run() {
  const auto error = co_await stream_.Handshake();
  bool go_on = !error;
  while (go_on && !gone_ && !shared_->closing) {
    idle_ = true;
    go_on = co_await ServeOne();
    since_ = Clock::now();
  }
  Close();
}

asio::awaitable<void> Connection::TurnAway(const Problem& problem) {
  Deadline(kTurnAway);
  const auto error = co_await stream_.Handshake();
  char data[kReadBytes];
  // The answer comes after the request has begun, as HTTP clients expect.
  const size_t bytes = error ? 0 : co_await stream_.ReadSome(data, sizeof data);
  if (bytes > 0 && !gone_) {
    shared_->statistics.Count({"other", "", problem.status}, 0, false);
    const bool written = co_await WriteAnswer(Request(), ProblemAnswer(problem), false, false);
    if (written) co_await Linger();
  }
  Close();
}

asio::awaitable<bool> Connection::ReadMore() {
  char data[kReadBytes];
  const size_t bytes = co_await stream_.ReadSome(data, sizeof data);
  parser_.Feed({data, bytes});
  co_return bytes > 0 && !gone_;
}

asio::awaitable<bool> Connection::ServeOne() {
  const Route* route = nullptr;
  std::optional<ProblemError> refused;
  try {
    const bool whole = co_await Receive(&route);
    if (!whole) co_return false;
  } catch (const ProblemError& error) {
    refused = error;
  }
  if (refused) {
    const bool go_on = co_await Refuse(*refused, parser_.head());
    co_return go_on;
  }
  const bool keep = parser_.keep_alive();
  const bool chunked = parser_.version_1_1();
  const auto request = std::make_shared<const Request>(parser_.Take());
  const int64_t begun_us = MonotonicMicros();
  Response response = co_await Handle(*route, request);
  if (gone_) co_return false;
  const std::string& follower = request->principal.name;
  if (response.events && !MayFollow(*shared_, follower, client_)) {
    response = TooManyStreams();
  }
  const int status = response.status;
  const std::shared_ptr<EventSource> events = response.events;
  const std::shared_ptr<Tunnel> tunnel = response.tunnel;
  bool written =
      co_await WriteAnswer(*request, std::move(response), keep && !shared_->closing, chunked);
  shared_->statistics.Count({request->method, request->route, status},
                            static_cast<double>(MonotonicMicros() - begun_us) * 1e-6,
                            events == nullptr);
  if (tunnel) {
    if (written && status == 101)
      asio::co_spawn(shared_->context, ReadTunnel(tunnel), asio::detached);
    if (written && status == 101) co_await RunTunnel(tunnel.get());
    tunnel->OnMore({});
    tunnel->Ended();
    co_return false;
  }
  if (events && written && request->method != "HEAD") {
    co_await WriteEvents(events.get(), chunked, follower);
    co_return false;
  }
  co_return written&& keep;
}

// Reads the next request completely into the parser. False at the connection's end.
asio::awaitable<bool> Connection::Receive(const Route** route) {
  const TimeLimits& time = shared_->options.time;
  // A client without an admitted request may not be silent for long.
  Deadline(parser_.begun() || !known_ ? std::min(time.header, time.idle) : time.idle);
  while (!parser_.ReadHead()) {
    const bool begun = parser_.begun();
    const bool more = co_await ReadMore();
    if (!more) co_return false;
    if (!begun && parser_.begun()) Deadline(time.header);
  }
  idle_ = false;
  Request& head = parser_.head();
  head.client = client_;
  *route = &shared_->admission.Admit(&head, MonotonicMicros());
  known_ = known_ || head.principal.role != Role::kNone;
  parser_.LimitBody((*route)->body_bytes_max);
  Deadline(time.body);
  if (parser_.expects_continue()) {
    const auto error = co_await stream_.Write("HTTP/1.1 100 Continue\r\n\r\n");
    if (error) co_return false;
  }
  while (!parser_.ReadBody()) {
    const bool more = co_await ReadMore();
    if (!more) co_return false;
  }
  co_return true;
}

// Answers a request that is not admitted. The connection goes on only if all of the request was
// read.
asio::awaitable<bool> Connection::Refuse(const ProblemError& error, const Request& head) {
  const int status = error.problem().status;
  shared_->statistics.Count({head.route.empty() ? "other" : head.method, head.route, status}, 0,
                            false);
  bool whole = false;
  try {
    whole = !parser_.broken() && parser_.keep_alive() && parser_.ReadBody();
  } catch (const ProblemError&) {
  }
  Request request = whole ? parser_.Take() : head;
  const bool written = co_await WriteAnswer(request, ProblemAnswer(error.problem()), whole, false);
  if (!whole && written) co_await Linger();
  co_return whole&& written;
}

asio::awaitable<Response> Connection::Handle(const Route& route,
                                             std::shared_ptr<const Request> request) {
  answer_.reset();
  Deadline(shared_->options.time.answer);
  unwanted_ = std::make_shared<std::atomic<bool>>(false);
  // The answer may come from any thread, and after this connection or the server is gone.
  Responder responder(
      [self = weak_from_this(), weak = std::weak_ptr<Shared>(shared_)](Response response) {
        const std::shared_ptr<Shared> shared = weak.lock();
        if (!shared) return;
        asio::dispatch(shared->context, [self, response = std::move(response)]() mutable {
          const std::shared_ptr<Connection> connection = self.lock();
          if (!connection) return;
          connection->answer_ = std::move(response);
          connection->signal_.cancel();
        });
      },
      unwanted_);
  try {
    route.handler(request, responder);
  } catch (const std::exception& error) {
    responder(AnswerForException(error, *request));
  }
  responder = Responder([](Response) {});  // only the handler's copies are left
  while (!answer_ && !gone_) static_cast<void>(co_await signal_.async_wait(kAwait));
  unwanted_.reset();
  Response response = answer_ ? std::move(*answer_) : Response();
  answer_.reset();
  co_return response;
}

// Lets the peer read the answer, before bytes that it still sends reset the connection.
asio::awaitable<void> Connection::Linger() {
  Deadline(kLinger);
  stream_.EndSending();
  char data[kReadBytes];
  size_t total = 0;
  for (size_t bytes = 1; bytes > 0 && total < kLingerBytesMax && !gone_; total += bytes) {
    bytes = co_await stream_.ReadSome(data, sizeof data);
  }
}

}  // namespace evald::http
