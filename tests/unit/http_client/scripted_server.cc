#include "scripted_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>

namespace evald::http_client::test {

Script Answer(int status, const std::string& body, const std::string& fields) {
  return {fmt::format("HTTP/1.1 {} Text\r\n{}Content-Length: {}\r\n\r\n{}", status, fields,
                      body.size(), body)};
}

ScriptedServer::ScriptedServer(Handler handler)
    : handler_(std::move(handler)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), plain, bytes) != 0 || ::listen(listener_.get(), 64) != 0 ||
      ::getsockname(listener_.get(), plain, &bytes) != 0) {
    throw std::runtime_error("cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

ScriptedServer::~ScriptedServer() {
  closing_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (const UniqueFd& socket : sockets_) ::shutdown(socket.get(), SHUT_RDWR);
  for (std::thread& thread : threads_) thread.join();
}

std::string ScriptedServer::Url(const std::string& host, const std::string& path) const {
  return fmt::format("http://{}:{}{}", host, port_, path);
}

std::vector<std::string> ScriptedServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void ScriptedServer::Accept() {
  while (!closing_) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    ++connections_;
    sockets_.emplace_back(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void ScriptedServer::Serve(int fd) {
  std::string input, request;
  while (ReadRequest(fd, &input, &request)) {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    if (!Play(fd, handler_(request))) break;
  }
  ::shutdown(fd, SHUT_RDWR);
}

bool ScriptedServer::Play(int fd, const Script& script) {
  const auto send = [fd](const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<size_t>(count);
    }
    return true;
  };
  if (!send(script.bytes)) return false;
  for (auto left = script.pause; left.count() > 0 && !closing_;
       left -= std::chrono::milliseconds(10))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return send(script.rest) && !script.close;
}

bool ScriptedServer::ReadRequest(int fd, std::string* input, std::string* request) const {
  while (true) {
    const size_t head = input->find("\r\n\r\n");
    if (head != std::string::npos) {
      const size_t length = input->find("Content-Length: ");
      const size_t body = length < head ? std::stoul(input->substr(length + 16)) : 0;
      if (input->size() >= head + 4 + body) {
        *request = input->substr(0, head + 4 + body);
        input->erase(0, head + 4 + body);
        return true;
      }
    }
    char data[65536];
    const ssize_t count = ::recv(fd, data, sizeof data, 0);
    if (count <= 0) return false;
    input->append(data, static_cast<size_t>(count));
  }
}

}  // namespace evald::http_client::test
