#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "http_server/token_auth.h"

namespace evald::http {

class EventSource;
class Tunnel;

/// Header fields in the order in which they came. Names compare without regard to case.
class Headers {
 public:
  void Add(std::string name, std::string value);
  void Set(std::string_view name, std::string value);
  /// The first field with that name, or nullptr.
  const std::string* Find(std::string_view name) const;
  std::string Get(std::string_view name) const;
  size_t Count(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// One request. `path` is decoded segment by segment: a "/" that was sent as %2F stays within its
/// segment.
struct Request {
  std::string method;
  std::string target;             ///< as it was sent
  std::vector<std::string> path;  ///< without the leading "/"; "/" is empty
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, in order
  Headers headers;
  std::string body;
  std::string client;                             ///< the peer's address, without its port
  Principal principal;                            ///< the caller
  std::string route;                              ///< the template that matched: "/v1/runs/{run}"
  std::map<std::string, std::string> parameters;  ///< values of the template's {names}
};

/// Part of an open file, sent piece by piece: memory does not grow with the file.
struct FileBody {
  UniqueFd fd;
  uint64_t bytes = 0;
  uint64_t begin = 0;  ///< offset of the first byte
};

/// A body that is made while it is sent, so that a slow reader costs little memory.
class PieceSource {
 public:
  virtual ~PieceSource() = default;
  /// The length of the whole body.
  virtual uint64_t bytes() const = 0;
  /// The next bytes, at most `most`. None at the end, or if the rest can no longer be made.
  /// Server's thread; does not wait for anything but a local disk.
  virtual std::string Next(size_t most) = 0;
};

/// One response: `body`, or `file`, or `pieces`, or `events` (an event stream that lasts until
/// either side ends) or, with status 101, `tunnel`.
struct Response {
  int status = 200;
  Headers headers;
  std::string body;
  std::shared_ptr<FileBody> file;
  std::shared_ptr<PieceSource> pieces;
  std::shared_ptr<EventSource> events;
  std::shared_ptr<Tunnel> tunnel;
};

/// Answers one request, once, from any thread, at once or later. If the last copy is destroyed
/// unanswered, the answer is a 500 problem document. An answer after the client or the server is
/// gone is dropped.
class Responder {
 public:
  /// `gone`, if given, becomes true when the answer is no longer wanted.
  explicit Responder(std::function<void(Response)> send,
                     std::shared_ptr<const std::atomic<bool>> gone = nullptr);
  void operator()(Response response) const;
  /// False soon after the client has ended the connection, or its sending side, and once the time
  /// for the answer is over: reads need not go on. Any thread.
  bool wanted() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Called on the server's thread; must not block for long. Its exceptions become problem documents.
using Handler = std::function<void(const std::shared_ptr<const Request>&, Responder)>;

Response JsonResponse(int status, std::string json);
/// The reason phrase of RFC 9110: "Not Found".
std::string_view ReasonPhrase(int status);
bool EqualsIgnoringCase(std::string_view a, std::string_view b);

}  // namespace evald::http
