#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace evald::http_client::test {

/// How long to wait for what must come, however busy the machine is.
inline constexpr std::chrono::seconds kPatience{60};

/// A ScriptedServer's reply to one request: `bytes`, right or wrong, then nothing for
/// `pause`, then `rest`. The connection stays open unless `close`.
struct Script {
  std::string bytes;
  std::chrono::milliseconds pause{0};
  std::string rest = {};
  bool close = false;
};

/// A whole answer. `fields` are lines that end in "\r\n".
Script Answer(int status, const std::string& body, const std::string& fields = "");

/// A server on 127.0.0.1 with a thread for each connection. It sends what it is told, and keeps
/// what it got: head and body of each request.
class ScriptedServer {
 public:
  using Handler = std::function<Script(const std::string& request)>;
  explicit ScriptedServer(Handler handler);
  ~ScriptedServer();

  std::string url(const std::string& path = "/") const { return Url("127.0.0.1", path); }
  /// By another name of this machine.
  std::string Url(const std::string& host, const std::string& path) const;
  std::vector<std::string> requests() const;
  int connections() const { return connections_; }

 private:
  void Accept();
  void Serve(int fd);
  bool Play(int fd, const Script& script);
  bool ReadRequest(int fd, std::string* input, std::string* request) const;

  Handler handler_;
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<bool> closing_{false};
  std::atomic<int> connections_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::list<UniqueFd> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace evald::http_client::test
