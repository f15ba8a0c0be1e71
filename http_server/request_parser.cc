#include "http_server/request_parser.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "http_server/problem.h"
#include "http_server/target.h"

namespace evald::http {
namespace {

namespace beast = boost::beast;

// The longest line between the chunks of a body, and the longest trailer.
constexpr size_t kChunkLineBytesMax = 8 * 1024;

// The problem for an error of Beast's parser.
Problem ProblemOf(const beast::error_code& error, uint64_t header_bytes_max,
                  uint64_t body_bytes_max) {
  if (error == beast::http::error::header_limit) {
    return {431, "header-size",
            fmt::format("the request line and header fields exceed {} bytes", header_bytes_max)};
  }
  if (error == beast::http::error::body_limit) {
    return {413, "body-size", fmt::format("the body exceeds {} bytes", body_bytes_max)};
  }
  if (error == beast::http::error::bad_version)
    return {505, "version", "expected HTTP/1.0 or HTTP/1.1"};
  return {400, "malformed", fmt::format("not an HTTP request: {}", error.message())};
}

std::string Text(beast::string_view view) { return std::string(view.data(), view.size()); }

}  // namespace

struct RequestParser::State {
  beast::http::request_parser<beast::http::string_body> parser;
  Request head;
  bool head_done = false;
  bool line_ended = false;  // the last byte of the head so far ended a line
  bool folded = false;      // a line of the head begins with white space
  uint64_t body_bytes_max = 0;
};

RequestParser::RequestParser(const RequestLimits& limits) : limits_(limits) { Begin(); }
RequestParser::~RequestParser() = default;

void RequestParser::Refuse(int status, std::string code, std::string detail) {
  broken_ = true;
  throw ProblemError({status, std::move(code), std::move(detail)});
}

void RequestParser::Begin() {
  state_ = std::make_unique<State>();
  state_->parser.header_limit(limits_.header_bytes_max);
  state_->parser.body_limit(limits_.body_bytes_max);
  state_->body_bytes_max = limits_.body_bytes_max;
  state_->parser.eager(false);
}

void RequestParser::Feed(std::string_view bytes) {
  input_.erase(0, consumed_);
  consumed_ = 0;
  input_.append(bytes);
}

bool RequestParser::begun() const { return consumed_ < input_.size() || state_->parser.got_some(); }

// Feeds bytes to the parser until it has reached the end of the header or body, or needs more
// bytes.
bool RequestParser::Advance(bool to_end) {
  auto& parser = state_->parser;
  while (to_end ? !parser.is_done() : !parser.is_header_done()) {
    // Empty lines before a request are ignored (RFC 9112, 2.2).
    while (!parser.got_some() && consumed_ < input_.size() &&
           (input_[consumed_] == '\r' || input_[consumed_] == '\n')) {
      ++consumed_;
    }
    if (consumed_ == input_.size()) return false;
    beast::error_code error;
    const size_t used = parser.put(
        boost::asio::const_buffer(input_.data() + consumed_, input_.size() - consumed_), error);
    if (!to_end) LookForFolds(std::string_view(input_).substr(consumed_, used));
    consumed_ += used;
    if (error == beast::http::error::need_more) {
      if (to_end && input_.size() - consumed_ > kChunkLineBytesMax) {
        Refuse(400, "malformed", "a line between the chunks of the body is too long");
      }
      return false;
    }
    if (error) {
      const Problem problem = ProblemOf(error, limits_.header_bytes_max, state_->body_bytes_max);
      Refuse(problem.status, problem.code, problem.detail);
    }
  }
  return true;
}

// Looks for folded lines (obs-fold), which servers must refuse (RFC 9112, 5.2). Beast joins them
// with blanks; others might not.
void RequestParser::LookForFolds(std::string_view head) {
  for (const char c : head) {
    if (state_->line_ended && (c == ' ' || c == '\t')) state_->folded = true;
    state_->line_ended = c == '\n';
  }
}

bool RequestParser::ReadHead() {
  if (state_->head_done) return true;
  if (!Advance(false)) return false;
  state_->head_done = true;
  const auto& message = state_->parser.get();
  Request& head = state_->head;
  head.method = Text(message.method_string());
  head.target = Text(message.target());
  for (const auto& field : message)
    head.headers.Add(Text(field.name_string()), Text(field.value()));
  CheckHead();
  return true;
}

void RequestParser::CheckHead() {
  const auto& message = state_->parser.get();
  Request& head = state_->head;
  if (message.version() != 10 && message.version() != 11) {
    Refuse(505, "version", "expected HTTP/1.0 or HTTP/1.1");
  }
  if (state_->folded)
    Refuse(400, "folded", "a header field goes on in another line (obs-fold), which is not taken");
  const size_t hosts = head.headers.Count("Host");
  if (hosts > 1 || (hosts == 0 && message.version() == 11)) {
    Refuse(400, "host", fmt::format("found {} Host fields, expected one", hosts));
  }
  if (head.headers.Find("Transfer-Encoding") != nullptr && !state_->parser.chunked()) {
    Refuse(501, "transfer-encoding", "the only transfer coding taken is chunked");
  }
  if (const std::string* expect = head.headers.Find("Expect");
      expect != nullptr && !EqualsIgnoringCase(*expect, "100-continue")) {
    Refuse(417, "expectation", "the only expectation met is 100-continue");
  }
  if (!ParseTarget(&head))
    Refuse(400, "target", "the request's target is not a path that can be decoded");
}

Request& RequestParser::head() { return state_->head; }

bool RequestParser::expects_continue() const {
  return version_1_1() && state_->head.headers.Find("Expect") != nullptr &&
         !state_->parser.is_done();
}

bool RequestParser::keep_alive() const { return state_->parser.get().keep_alive(); }
bool RequestParser::version_1_1() const { return state_->parser.get().version() == 11; }

void RequestParser::LimitBody(uint64_t bytes_max) {
  if (bytes_max >= state_->body_bytes_max) return;
  state_->body_bytes_max = bytes_max;
  const auto announced = state_->parser.content_length();
  if (announced && *announced > bytes_max) {
    Refuse(413, "body-size",
           fmt::format("the body has {} bytes, at most {} are taken here", *announced, bytes_max));
  }
  // Beast counts its limit down while a body comes in. None of this body has come.
  if (!state_->parser.is_done()) state_->parser.body_limit(bytes_max);
}

bool RequestParser::ReadBody() {
  state_->parser.eager(true);
  return Advance(true);
}

Request RequestParser::Take() {
  Request request = std::move(state_->head);
  request.body = std::move(state_->parser.get().body());
  Begin();
  return request;
}

}  // namespace evald::http
