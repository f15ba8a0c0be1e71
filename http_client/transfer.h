#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "http_client/request.h"

namespace evald::http_client {

using CurlHandle = std::unique_ptr<CURL, void (*)(CURL*)>;

/// A new handle. Throws Error(kInfrastructure).
CurlHandle NewHandle();

/// One call on a handle of libcurl, with everything that the call's settings refer to. Its address
/// must not change while the call is under way. Internal to this room, which is why this header may
/// include libcurl's.
class Transfer {
 public:
  /// Sets the handle up. Throws Error(kUsage) for a URL or a header field that cannot be sent.
  Transfer(CurlHandle handle, uint64_t id, Request request);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  CURL* handle() const { return handle_.get(); }
  uint64_t id() const { return id_; }
  /// The response after libcurl's `result`. Once.
  Response End(CURLcode result);
  /// Gives the handle, with its connection, to the next call.
  CurlHandle TakeHandle() { return std::move(handle_); }

 private:
  using HeaderList = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;
  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  static int OnConnected(void* self, char* server_ip, char* own_ip, int server_port, int own_port);

  void SetRoute();
  void SetLimits();
  void SetMethod();
  void SetHeaders();
  void AddHeader(const std::string& name, const std::string& value);
  bool TakeHeaderLine(std::string_view line);
  bool Begin();
  bool Take(std::string_view bytes);
  bool Feed(std::string_view bytes);
  void Refuse(Outcome outcome, std::string error);

  CurlHandle handle_;
  uint64_t id_;
  Request request_;
  HeaderList headers_{nullptr, ::curl_slist_free_all};
  size_t header_bytes_ = 0;
  bool header_ended_ = false;
  Response response_;
  bool ended_here_ = false;  // a callback ended the call, and has set the outcome
  char words_[CURL_ERROR_SIZE] = "";
};

}  // namespace evald::http_client
