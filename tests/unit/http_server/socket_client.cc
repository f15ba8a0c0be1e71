#include "socket_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <stdexcept>

#include "base/text.h"

namespace evald::http::test {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

SocketClient::SocketClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect");
  }
}

SocketClient::SocketClient(const std::filesystem::path& path)
    : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.native().copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect");
  }
}

void SocketClient::ShrinkReceiveBuffer() {
  const int bytes = 4096;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

bool SocketClient::Send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count =
        ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

void SocketClient::EndSending() { ::shutdown(socket_.get(), SHUT_WR); }

bool SocketClient::Fill(milliseconds limit) {
  pollfd waiting{socket_.get(), POLLIN, 0};
  if (ended_ || ::poll(&waiting, 1, static_cast<int>(limit.count())) <= 0) return false;
  char data[65536];
  const ssize_t count = ::recv(socket_.get(), data, sizeof data, 0);
  if (count <= 0) {
    ended_ = true;
    return false;
  }
  input_.append(data, static_cast<size_t>(count));
  return true;
}

std::string SocketClient::ReceiveUntil(const std::string& text, milliseconds limit) {
  const auto end = steady_clock::now() + limit;
  while (input_.find(text) == std::string::npos && !ended_ && steady_clock::now() < end) {
    Fill(std::chrono::duration_cast<milliseconds>(end - steady_clock::now()) + milliseconds(1));
  }
  const size_t found = input_.find(text);
  const std::string received =
      input_.substr(0, found == std::string::npos ? found : found + text.size());
  input_.erase(0, received.size());
  return received;
}

bool SocketClient::EndsWithin(milliseconds limit) {
  const auto end = steady_clock::now() + limit;
  while (!ended_ && steady_clock::now() < end) {
    Fill(milliseconds(20));
    input_.clear();
  }
  return ended_;
}

Answer SocketClient::Receive(bool head_only) {
  Answer answer;
  size_t end = 0;
  while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
    if (!Fill(kPatience)) return answer;
  }
  const std::vector<std::string> lines = Split(std::string_view(input_).substr(0, end), '\n');
  answer.status = std::stoi(lines[0].substr(9, 3));
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    std::string name = lines[i].substr(0, colon);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    answer.headers[name] = std::string(Trim(std::string_view(lines[i]).substr(colon + 1)));
  }
  input_.erase(0, end + 4);
  const bool has_body = !head_only && answer.status != 304 && answer.status != 204;
  const auto length = answer.headers.find("content-length");
  if (!has_body) return answer;
  if (length == answer.headers.end()) {
    while (Fill(kPatience)) {
    }
    answer.body = std::exchange(input_, "");
    return answer;
  }
  const size_t bytes = std::stoul(length->second);
  while (input_.size() < bytes && Fill(kPatience)) {
  }
  answer.body = input_.substr(0, bytes);
  input_.erase(0, bytes);
  return answer;
}

std::string Ask(const std::string& method, const std::string& target, const std::string& headers,
                const std::string& body) {
  std::string request = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return request + "\r\n" + body;
}

Answer Fetch(uint16_t port, const std::string& request) {
  SocketClient client(port);
  client.Send(request);
  return client.Receive(request.starts_with("HEAD "));
}

}  // namespace evald::http::test
