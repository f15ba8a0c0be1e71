#include "worker/openai/http_client.h"

#include <curl/curl.h>

#include <map>
#include <mutex>
#include <utility>

#include "evald/error.h"

namespace evald::openai {
namespace {

struct Transfer {
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::string body;
  HttpReply reply;
  size_t reply_bytes_max = 0;

  ~Transfer() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }
};

size_t Receive(char* data, size_t size, size_t count, void* where) {
  auto* transfer = static_cast<Transfer*>(where);
  const size_t bytes = size * count;
  if (transfer->reply.body.size() + bytes > transfer->reply_bytes_max) return 0;  // ends the call
  transfer->reply.body.append(data, bytes);
  return bytes;
}

void InitialiseCurl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace

struct HttpClient::State {
  HttpOptions options;
  CURLM* multi = nullptr;
  std::map<CURL*, std::unique_ptr<Transfer>> transfers;

  void Configure(Transfer* transfer, const HttpCall& call);
  HttpReply Take(const CURLMsg& message);
};

HttpClient::HttpClient(const HttpOptions& options) : state_(std::make_unique<State>()) {
  InitialiseCurl();
  state_->options = options;
  state_->multi = curl_multi_init();
  if (state_->multi == nullptr) throw Error(ErrorKind::kInfrastructure, "libcurl: no multi handle");
}

HttpClient::~HttpClient() {
  CancelAll();
  curl_multi_cleanup(state_->multi);
}

void HttpClient::State::Configure(Transfer* transfer, const HttpCall& call) {
  CURL* easy = transfer->easy;
  curl_easy_setopt(easy, CURLOPT_URL, call.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options.connect_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, Receive);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "evald");
  if (!call.body.empty()) {
    transfer->body = call.body;
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(transfer->body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->body.c_str());
    transfer->headers = curl_slist_append(transfer->headers, "Content-Type: application/json");
    transfer->headers = curl_slist_append(transfer->headers, "Expect:");
  }
  if (!options.bearer_token.empty()) {
    const std::string header = "Authorization: Bearer " + options.bearer_token;
    transfer->headers = curl_slist_append(transfer->headers, header.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
}

void HttpClient::Start(const HttpCall& call) {
  auto transfer = std::make_unique<Transfer>();
  transfer->easy = curl_easy_init();
  if (transfer->easy == nullptr) throw Error(ErrorKind::kInfrastructure, "libcurl: no handle");
  transfer->reply.id = call.id;
  transfer->reply_bytes_max = state_->options.reply_bytes_max;
  state_->Configure(transfer.get(), call);
  const CURLMcode code = curl_multi_add_handle(state_->multi, transfer->easy);
  if (code != CURLM_OK) throw Error(ErrorKind::kInfrastructure, curl_multi_strerror(code));
  state_->transfers.emplace(transfer->easy, std::move(transfer));
}

HttpReply HttpClient::State::Take(const CURLMsg& message) {
  CURL* easy = message.easy_handle;
  const CURLcode result = message.data.result;
  curl_multi_remove_handle(multi, easy);
  const auto node = transfers.extract(easy);
  Transfer& transfer = *node.mapped();
  if (result == CURLE_OK) {
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &transfer.reply.status);
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    transfer.reply.retry_after_seconds = static_cast<double>(seconds);
  } else {
    transfer.reply.error = curl_easy_strerror(result);
    transfer.reply.timed_out = result == CURLE_OPERATION_TIMEDOUT;
    if (result == CURLE_WRITE_ERROR) transfer.reply.error = "the reply is too long";
  }
  return std::move(transfer.reply);
}

std::vector<HttpReply> HttpClient::Poll(std::chrono::milliseconds budget) {
  std::vector<HttpReply> replies;
  const auto deadline = std::chrono::steady_clock::now() + budget;
  while (true) {
    int running = 0;
    curl_multi_perform(state_->multi, &running);
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(state_->multi, &left)) {
      if (message->msg == CURLMSG_DONE) replies.push_back(state_->Take(*message));
    }
    const auto wait =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (!replies.empty() || state_->transfers.empty() || wait.count() <= 0) return replies;
    curl_multi_poll(state_->multi, nullptr, 0, static_cast<int>(wait.count()), nullptr);
  }
}

size_t HttpClient::pending() const { return state_->transfers.size(); }

void HttpClient::CancelAll() {
  for (const auto& [easy, transfer] : state_->transfers) {
    curl_multi_remove_handle(state_->multi, easy);
  }
  state_->transfers.clear();
}

HttpReply HttpClient::Do(const HttpCall& call) {
  Start(call);
  while (true) {
    std::vector<HttpReply> replies = Poll(std::chrono::milliseconds(1000));
    if (!replies.empty()) return std::move(replies.front());
  }
}

}  // namespace evald::openai
