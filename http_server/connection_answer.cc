// The answers of a connection: head, body, file or pieces.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "http_server/await.h"
#include "http_server/connection.h"
#include "http_server/encode.h"

namespace evald::http {
namespace {

namespace asio = boost::asio;

// RFC 9110, 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string HttpDate() {
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr)));
}

constexpr std::chrono::milliseconds kPaceStep{200};

bool HasNoBody(int status) { return status == 101 || status == 204 || status == 304; }

}  // namespace

asio::awaitable<bool> Connection::Write(std::string_view bytes) {
  while (!bytes.empty() && !gone_) {
    Deadline(shared_->options.time.write);
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    const auto error = co_await stream_.Write(piece);
    if (error) co_return false;
    bytes.remove_prefix(piece.size());
  }
  co_return !gone_;
}

std::string Connection::Head(const Request& request, const Response& response, bool keep,
                             bool chunked) const {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nServer: evald\r\n", response.status,
                                 ReasonPhrase(response.status), HttpDate());
  for (const auto& [name, value] : response.headers.fields()) {
    head += name + ": ";
    for (const char c : value) head += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
    head += "\r\n";
  }
  if (response.events) {
    head +=
        "Content-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n";
    if (chunked) head += "Transfer-Encoding: chunked\r\n";
  } else if (!HasNoBody(response.status)) {
    uint64_t bytes = response.body.size();
    if (response.file) bytes = response.file->bytes;
    if (response.pieces) bytes = response.pieces->bytes();
    head += fmt::format("Content-Length: {}\r\n", bytes);
  }
  if (response.tunnel) {
    head += "Connection: Upgrade\r\n";
  } else if (!keep) {
    head += "Connection: close\r\n";
  } else if (request.headers.Find("Connection") != nullptr) {
    head += "Connection: keep-alive\r\n";
  }
  return head + "\r\n";
}

asio::awaitable<bool> Connection::WriteAnswer(const Request& request, Response response, bool keep,
                                              bool chunked) {
  Encode(request, &response);
  const bool head_only = request.method == "HEAD" || HasNoBody(response.status);
  std::string text = Head(request, response, keep && !response.events, chunked);
  const bool one_piece = !head_only && !response.file && !response.pieces && !response.events;
  if (one_piece && response.body.size() <= kPieceBytes) {
    text += response.body;
    const bool written = co_await Write(text);
    co_return written;
  }
  bool written = co_await Write(text);
  if (!written || head_only || response.events) co_return written;
  if (response.file) {
    written = co_await WriteFile(*response.file);
  } else if (response.pieces) {
    written = co_await WritePieces(response.pieces.get());
  } else {
    written = co_await Write(response.body);
  }
  co_return written;
}

// Waits for the turn of the next bytes of a file.
asio::awaitable<void> Connection::Pace(size_t bytes) {
  const uint64_t rate = shared_->options.file_bytes_per_second;
  if (rate == 0) co_return;
  const auto now = Clock::now();
  const auto turn = std::max(now, shared_->files_until);
  shared_->files_until = turn + std::chrono::microseconds(1'000'000 * bytes / rate);
  if (turn == now) co_return;
  NoDeadline();
  asio::steady_timer timer(shared_->context);
  while (!gone_ && Clock::now() < turn) {  // a turn may be far away, and the server may stop
    timer.expires_at(std::min(turn, Clock::now() + kPaceStep));
    static_cast<void>(co_await timer.async_wait(kAwait));
  }
}

asio::awaitable<bool> Connection::WriteFile(const FileBody& file) {
  std::string piece(kPieceBytes, '\0');
  for (uint64_t offset = 0; offset < file.bytes;) {
    const size_t want = std::min<uint64_t>(piece.size(), file.bytes - offset);
    const ssize_t got =
        ::pread(file.fd.get(), piece.data(), want, static_cast<off_t>(file.begin + offset));
    // The file has become shorter: the announced length cannot be kept
    if (got <= 0) co_return false;
    co_await Pace(static_cast<size_t>(got));
    const bool written =
        co_await Write(std::string_view(piece).substr(0, static_cast<size_t>(got)));
    if (!written) co_return false;
    offset += static_cast<uint64_t>(got);
  }
  co_return true;
}

asio::awaitable<bool> Connection::WritePieces(PieceSource* pieces) {
  for (uint64_t left = pieces->bytes(); left > 0;) {
    const std::string piece = pieces->Next(kPieceBytes);
    if (piece.empty() || piece.size() > left) co_return false;  // as in WriteFile
    const bool written = co_await Write(piece);
    if (!written) co_return false;
    left -= piece.size();
  }
  co_return true;
}

}  // namespace evald::http
