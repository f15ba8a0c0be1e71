#include "orchestrator/agent/file_client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "evald/error.h"
#include "http_client/failure.h"
#include "http_client/problem.h"

namespace evald {

// A part of a file that is open for writing.
struct FileClient::Part {
  int fd;
  uint64_t offset, left;

  // False if the bytes are more than the part has space for.
  bool Take(std::string_view bytes) {
    if (bytes.size() > left) return false;
    while (!bytes.empty()) {
      const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        throw Error(ErrorKind::kInfrastructure,
                    fmt::format("the bytes that come cannot be written: {}", std::strerror(errno)));
      }
      bytes.remove_prefix(static_cast<size_t>(wrote));
      offset += static_cast<uint64_t>(wrote);
      left -= static_cast<uint64_t>(wrote);
    }
    return true;
  }
};

namespace {

constexpr std::chrono::seconds kSilence{30};
// Another agent is one of several sources: one that gives nothing is soon left.
constexpr std::chrono::seconds kPeerConnect{3}, kPeerSilence{10};

// The scheme, host and port: the rest says nothing to people, whom the server's answer tells more.
std::string ServerOf(const std::string& url) {
  return url.substr(0, url.find('/', url.find("://") + 3));
}

void ThrowUnlessOk(const http_client::Request& request, const http_client::Response& response) {
  if (response.ok()) return;
  if (!response.answered()) throw http_client::FailureOf(request, response);
  // Another try may also help if the state of the work was another one (409) or bytes were not
  // those of the hash (422).
  const bool again =
      http_client::IsTemporary(response.status) || response.status == 409 || response.status == 422;
  const http_client::Problem problem = http_client::ProblemOf(response);
  throw Error(again ? ErrorKind::kInfrastructure : ErrorKind::kUsage,
              fmt::format("{}: {}", ServerOf(request.url), problem.detail), problem.remedy);
}

}  // namespace

http_client::Request FileClient::Ask(const std::string& method, const std::string& path) const {
  http_client::Request request;
  request.method = method;
  request.url = address_.server + path;
  request.bearer_token = address_.token;
  request.ca_file = address_.ca_file;
  request.proxy = http_client::Proxy::kNone;  // as for the agent's connection
  request.limits.silence = kSilence;
  return request;
}

std::string FileClient::Get(const std::string& path) {
  const http_client::Request request = Ask("GET", path);
  http_client::Response response = client_.Perform(request, cancel_);
  ThrowUnlessOk(request, response);
  return std::move(response.body);
}

void FileClient::GetRange(const std::string& path, uint64_t first, uint64_t count, int fd) {
  if (count == 0) return;
  Part part{fd, first, count};
  http_client::Request request = Ask("GET", path);
  request.headers.emplace_back("Range", fmt::format("bytes={}-{}", first, first + count - 1));
  const http_client::Response response = Fetch(std::move(request), &part);
  if (part.left > 0 || response.status != 206) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("{}{}: expected bytes {} to {}, found status {} with {} bytes", address_.server,
                    path, first, first + count - 1, response.status, count - part.left));
  }
}

namespace {

// Takes at most `count` bytes of an answer.
std::function<bool(std::string_view)> Into(std::string* bytes, uint64_t count) {
  return [bytes, count](std::string_view piece) {
    if (piece.size() > count - bytes->size()) return false;
    bytes->append(piece);
    return true;
  };
}

void AskForRange(http_client::Request* request, uint64_t first, uint64_t count) {
  request->headers.emplace_back("Range", fmt::format("bytes={}-{}", first, first + count - 1));
}

}  // namespace

std::string FileClient::GetBytes(const std::string& path, uint64_t first, uint64_t count) {
  std::string bytes;
  if (count == 0) return bytes;
  http_client::Request request = Ask("GET", path);
  AskForRange(&request, first, count);
  bytes.reserve(count);
  request.sink = Into(&bytes, count);
  request.rewind = [&bytes] { bytes.clear(); };
  const http_client::Response response =
      client_.Perform(request, http_client::RetryPolicy{}, cancel_);
  ThrowUnlessOk(request, response);
  if (bytes.size() != count || response.status != 206) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("{}{}: expected bytes {} to {}, found status {} with {} bytes", address_.server,
                    path, first, first + count - 1, response.status, bytes.size()));
  }
  return bytes;
}

FileClient::PeerAnswer FileClient::AskPeer(const std::string& path, uint64_t first,
                                           uint64_t count) {
  PeerAnswer answer;
  http_client::Request request = Ask("GET", path);
  request.limits.connect = kPeerConnect;
  request.limits.silence = kPeerSilence;
  AskForRange(&request, first, count);
  answer.bytes.reserve(count);
  request.sink = Into(&answer.bytes, count);
  const http_client::Response response = client_.Perform(request, cancel_);
  answer.outcome = response.outcome;
  if (response.answered()) answer.status = response.status;
  if (response.ok() && (answer.status != 206 || answer.bytes.size() != count)) answer.status = 500;
  if (!response.answered()) {
    answer.why = response.error;
  } else if (answer.status != 206) {
    answer.why = http_client::ProblemOf(response).detail;
  }
  return answer;
}

void FileClient::GetFile(const std::string& path, int fd) {
  Part part{fd, 0, UINT64_MAX};
  Fetch(Ask("GET", path), &part);
}

http_client::Response FileClient::Fetch(http_client::Request request, Part* part) {
  const Part begin = *part;
  request.sink = [part](std::string_view bytes) { return part->Take(bytes); };
  request.rewind = [part, begin] { *part = begin; };
  http_client::Response response = client_.Perform(request, http_client::RetryPolicy{}, cancel_);
  ThrowUnlessOk(request, response);
  return response;
}

std::string FileClient::PutAndGet(const std::string& path, std::string_view body) {
  http_client::Request request = Ask("PUT", path);
  request.body = body;
  request.headers.emplace_back("Content-Type", "application/json");
  http_client::Response response = client_.Perform(request, http_client::RetryPolicy{}, cancel_);
  ThrowUnlessOk(request, response);
  return std::move(response.body);
}

void FileClient::Put(const std::string& path, std::string_view body) {
  http_client::Request request = Ask("PUT", path);
  request.body = body;
  ThrowUnlessOk(request, client_.Perform(request, cancel_));
}

}  // namespace evald
