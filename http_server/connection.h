#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http_server/admission.h"
#include "http_server/byte_stream.h"
#include "http_server/problem.h"
#include "http_server/request_parser.h"
#include "http_server/server.h"

namespace evald::http {

/// State that all connections of a server share. Internal to this room; server's thread only,
/// except that any thread may post to `context`.
struct Shared {
  Shared(const ServerOptions& options_in, Router router);

  boost::asio::io_context context{1};
  ServerOptions options;
  Admission admission;
  Statistics statistics;
  std::map<std::string, size_t> calls;         ///< calls under way by the token's name
  std::map<std::string, size_t> streams;       ///< open event streams by the token's name
  std::map<std::string, size_t> streams_from;  ///< open event streams by the client's address
  /// When the files that were sent so far are paid for (ServerOptions::file_bytes_per_second)
  std::chrono::steady_clock::time_point files_until{};
  bool closing = false;
};

/// One client. Reads requests, has them admitted and handled, and writes the answers, one after
/// another. Each step has a deadline: the server calls Expire() now and then, which closes the
/// socket if the deadline has passed. If the client ends the connection before its answer is made,
/// Expire() tells the handler (Responder::wanted). Internal to this room; server's thread only.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  template <typename T>
  using awaitable = boost::asio::awaitable<T>;

  Connection(std::shared_ptr<Shared> shared, ByteStream::Socket socket, std::string client,
             boost::asio::ssl::context* tls);
  ~Connection();

  /// Runs until the connection ends.
  awaitable<void> Run();
  /// Called in place of Run(): answers any request with `problem`, without looking at it, and ends.
  awaitable<void> TurnAway(const Problem& problem);
  void Expire(Clock::time_point now);
  /// Lets an answer under way end. Closes an idle connection or an event stream.
  void WindDown();
  void Close();

  const std::string& client() const { return client_; }
  /// Whether one of its requests was admitted: with a token or, if no tokens are in force, at all.
  bool known() const { return known_; }
  /// Whether it is between two requests and no byte of the next one has come.
  bool idle() const { return idle_ && !parser_.begun(); }
  /// The time when it connected, or when its last request ended.
  Clock::time_point since() const { return since_; }

 private:
  static constexpr size_t kReadBytes = 16 * 1024;   ///< read at once
  static constexpr size_t kPieceBytes = 64 * 1024;  ///< written at once, with a deadline each

  // requests (connection.cc)
  awaitable<bool> ReadMore();
  awaitable<bool> ServeOne();
  void BeginCall(const std::string& token);
  void EndCall();
  awaitable<bool> Receive(const Route** route);
  awaitable<Response> Handle(const Route& route, std::shared_ptr<const Request> request);
  awaitable<bool> Refuse(const ProblemError& error, const Request& head);
  awaitable<void> Linger();
  Response ProblemAnswer(const Problem& problem) const;
  Response AnswerForException(const std::exception& error, const Request& request) const;
  Response TooManyStreams() const;
  void Deadline(std::chrono::milliseconds from_now) { deadline_ = Clock::now() + from_now; }
  void NoDeadline() { deadline_ = Clock::time_point::max(); }

  // answers (connection_answer.cc)
  awaitable<bool> Write(std::string_view bytes);
  awaitable<bool> WriteAnswer(const Request& request, Response response, bool keep, bool chunked);
  awaitable<bool> WriteFile(const FileBody& file);
  awaitable<void> Pace(size_t bytes);
  awaitable<bool> WritePieces(PieceSource* pieces);
  std::string Head(const Request& request, const Response& response, bool keep, bool chunked) const;

  // event streams and tunnels (connection_streams.cc)
  awaitable<bool> WriteEvents(EventSource* source, bool chunked, std::string follower);
  awaitable<void> WaitForMore(bool* silent);
  awaitable<void> WatchForEnd();
  awaitable<void> RunTunnel(Tunnel* tunnel);
  awaitable<void> ReadTunnel(std::shared_ptr<Tunnel> tunnel);

  std::shared_ptr<Shared> shared_;
  std::string client_;
  ByteStream stream_;
  RequestParser parser_;
  boost::asio::steady_timer signal_;  ///< cancelled to wake the coroutine that waits on it
  Clock::time_point deadline_;
  std::optional<std::string> call_of_;  ///< the token of the call under way, if it counts
  std::optional<Response> answer_;
  std::shared_ptr<std::atomic<bool>> unwanted_;  ///< of the request that is being handled
  Clock::time_point since_ = Clock::now();
  bool known_ = false;
  bool idle_ = true;  ///< between requests
  bool streaming_ = false;
  bool more_ = false;  ///< the event source has new frames
  bool gone_ = false;
};

}  // namespace evald::http
