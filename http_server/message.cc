#include "http_server/message.h"

#include <atomic>

#include "http_server/problem.h"

namespace evald::http {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

void Headers::Add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::Set(std::string_view name, std::string value) {
  for (auto& [key, old] : fields_) {
    if (EqualsIgnoringCase(key, name)) {
      old = std::move(value);
      return;
    }
  }
  Add(std::string(name), std::move(value));
}

const std::string* Headers::Find(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (EqualsIgnoringCase(key, name)) return &value;
  }
  return nullptr;
}

std::string Headers::Get(std::string_view name) const {
  const std::string* found = Find(name);
  return found == nullptr ? "" : *found;
}

size_t Headers::Count(std::string_view name) const {
  size_t count = 0;
  for (const auto& [key, value] : fields_) count += EqualsIgnoringCase(key, name) ? 1 : 0;
  return count;
}

struct Responder::State {
  std::function<void(Response)> send;
  std::shared_ptr<const std::atomic<bool>> gone;
  std::atomic<bool> sent{false};

  ~State() {
    if (!sent) send(ProblemResponse({500, "internal", "the request was dropped unanswered"}));
  }
};

Responder::Responder(std::function<void(Response)> send,
                     std::shared_ptr<const std::atomic<bool>> gone)
    : state_(std::make_shared<State>()) {
  state_->send = std::move(send);
  state_->gone = std::move(gone);
}

bool Responder::wanted() const { return state_->gone == nullptr || !*state_->gone; }

void Responder::operator()(Response response) const {
  if (!state_->sent.exchange(true)) state_->send(std::move(response));
}

Response JsonResponse(int status, std::string json) {
  Response response;
  response.status = status;
  response.headers.Add("Content-Type", "application/json");
  response.body = std::move(json);
  return response;
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 426:
      return "Upgrade Required";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace evald::http
