#include "http_client/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/text.h"
#include "evald/error.h"
#include "http_client/certificates.h"
#include "http_client/failure.h"
#include "http_client/server_owner.h"
#include "http_client/url.h"

namespace evald::http_client {
namespace {

constexpr long kSinkBufferBytes = 256 << 10;  // libcurl's own is 16 KiB, one write for each

template <typename Value>
void Set(CURL* handle, CURLoption option, Value value) {
  const CURLcode code = ::curl_easy_setopt(handle, option, value);
  if (code != CURLE_OK) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("libcurl takes no option {}: {}", static_cast<int>(option),
                            ::curl_easy_strerror(code)));
  }
}

bool SendsBody(const std::string& method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

bool IsPlain(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  });
}

void AddField(std::string_view line, Fields* fields) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  std::string name(Trim(line.substr(0, colon)));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  (*fields)[std::move(name)] = Trim(line.substr(colon + 1));
}

}  // namespace

CurlHandle NewHandle() {
  static std::once_flag once;
  std::call_once(once, [] { ::curl_global_init(CURL_GLOBAL_DEFAULT); });
  CurlHandle handle(::curl_easy_init(), ::curl_easy_cleanup);
  if (!handle) throw Error(ErrorKind::kInfrastructure, "libcurl cannot begin: no memory is left");
  return handle;
}

Transfer::Transfer(CurlHandle handle, uint64_t id, Request request)
    : handle_(std::move(handle)), id_(id), request_(std::move(request)) {
  Set(this->handle(), CURLOPT_ERRORBUFFER, words_);
  SetRoute();
  SetLimits();
  SetMethod();
  SetHeaders();
  Set(this->handle(), CURLOPT_HEADERFUNCTION, OnHeader);
  Set(this->handle(), CURLOPT_HEADERDATA, this);
  Set(this->handle(), CURLOPT_WRITEFUNCTION, OnBody);
  Set(this->handle(), CURLOPT_WRITEDATA, this);
  if (request_.own_server) {
    Set(this->handle(), CURLOPT_PREREQFUNCTION, OnConnected);
    Set(this->handle(), CURLOPT_PREREQDATA, this);
  }
}

// Sets the call's server, its proxy and the certificates that it trusts.
void Transfer::SetRoute() {
  Set(handle(), CURLOPT_URL, request_.url.c_str());
  Set(handle(), CURLOPT_PROTOCOLS_STR, "http,https");
  Set(handle(), CURLOPT_FOLLOWLOCATION, 0L);
  Set(handle(), CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  Set(handle(), CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  const bool here = IsLoopback(ParseUrl(request_.url));
  const bool direct = here || !request_.unix_socket.empty() || request_.proxy == Proxy::kNone;
  if (direct) Set(handle(), CURLOPT_PROXY, "");
  if (!request_.unix_socket.empty()) {
    Set(handle(), CURLOPT_UNIX_SOCKET_PATH, request_.unix_socket.c_str());
  }
  if (!request_.ca_file.empty()) {
    Set(handle(), CURLOPT_CAINFO, request_.ca_file.c_str());
    Set(handle(), CURLOPT_CAPATH, nullptr);  // else the system's are trusted too
  } else if (const std::string file = SystemCertificates(); !file.empty()) {
    Set(handle(), CURLOPT_CAINFO, file.c_str());
  }
}

void Transfer::SetLimits() {
  const Limits& limits = request_.limits;
  Set(handle(), CURLOPT_NOSIGNAL, 1L);
  Set(handle(), CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect.count()));
  Set(handle(), CURLOPT_TIMEOUT_MS, static_cast<long>(limits.total.count()));
  if (limits.silence.count() > 0) {
    Set(handle(), CURLOPT_LOW_SPEED_LIMIT, 1L);
    Set(handle(), CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.silence.count()));
  }
  if (request_.sink) Set(handle(), CURLOPT_BUFFERSIZE, kSinkBufferBytes);
}

void Transfer::SetMethod() {
  if (SendsBody(request_.method)) {
    Set(handle(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    Set(handle(), CURLOPT_POSTFIELDS, request_.body.data());
  }
  Set(handle(), CURLOPT_CUSTOMREQUEST, request_.method.c_str());
}

void Transfer::SetHeaders() {
  Set(handle(), CURLOPT_USERAGENT, "evald");
  if (request_.gzip) Set(handle(), CURLOPT_ACCEPT_ENCODING, "gzip");
  bool typed = false;
  for (const auto& [name, value] : request_.headers) {
    AddHeader(name, value);
    typed = typed || name == "Content-Type";
  }
  if (!request_.bearer_token.empty()) {
    AddHeader("Authorization", "Bearer " + request_.bearer_token);
  }
  // Fields that libcurl adds of itself: a pause before the body, and the type of a web form.
  headers_.reset(::curl_slist_append(headers_.release(), "Expect:"));
  if (!typed) headers_.reset(::curl_slist_append(headers_.release(), "Content-Type:"));
  Set(handle(), CURLOPT_HTTPHEADER, headers_.get());
}

void Transfer::AddHeader(const std::string& name, const std::string& value) {
  const bool named = !name.empty() && name.find_first_of(" \t:;") == std::string::npos;
  if (!named || !IsPlain(name) || !IsPlain(value)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} {}: the header field '{}' holds a line break or another control "
                            "character",
                            request_.method, Shown(request_.url), PrintableLine(name)));
  }
  headers_.reset(
      ::curl_slist_append(headers_.release(), fmt::format("{}: {}", name, value).c_str()));
}

void Transfer::Refuse(Outcome outcome, std::string error) {
  ended_here_ = true;
  response_.outcome = outcome;
  response_.error = std::move(error);
}

// Called before each request, on a new connection and on a kept one.
int Transfer::OnConnected(void* self, char* server_ip, char* own_ip, int server_port,
                          int own_port) {
  const auto server = TcpEndOf(server_ip, static_cast<uint16_t>(server_port)),
             own = TcpEndOf(own_ip, static_cast<uint16_t>(own_port));
  const std::string why_not = server && own ? WhyNotOurServer(*server, *own) : "";
  if (why_not.empty()) return CURL_PREREQFUNC_OK;
  static_cast<Transfer*>(self)->Refuse(Outcome::kUntrusted, why_not);
  return CURL_PREREQFUNC_ABORT;
}

size_t Transfer::OnHeader(char* data, size_t size, size_t count, void* self) {
  const std::string_view line(data, size * count);
  return static_cast<Transfer*>(self)->TakeHeaderLine(line) ? size * count : 0;
}

bool Transfer::TakeHeaderLine(std::string_view line) {
  header_bytes_ += line.size();
  if (header_bytes_ > request_.limits.header_bytes_max) {
    Refuse(Outcome::kTooLong, fmt::format("the answer's header is too long, expected at most {}",
                                          HumanBytes(request_.limits.header_bytes_max)));
    return false;
  }
  if (line.starts_with("HTTP/")) {  // after an interim answer, too
    header_ended_ = false;
    response_.fields.clear();
  } else if (line == "\r\n" || line == "\n") {
    header_ended_ = true;
    return Begin();
  } else if (request_.keep_fields) {
    AddField(line, &response_.fields);
  }
  return true;
}

// An exception must not cross libcurl.
bool Transfer::Begin() {
  long status = 0;
  ::curl_easy_getinfo(handle(), CURLINFO_RESPONSE_CODE, &status);
  if (!request_.begin || status < 200 || status >= 300) return true;
  try {
    if (request_.begin(static_cast<int>(status), response_.fields)) return true;
  } catch (...) {
    response_.thrown = std::current_exception();
  }
  Refuse(Outcome::kStopped, "the answer was not wanted");
  return false;
}

size_t Transfer::OnBody(char* data, size_t size, size_t count, void* self) {
  return static_cast<Transfer*>(self)->Take({data, size * count}) ? size * count : 0;
}

bool Transfer::Take(std::string_view bytes) {
  long status = 0;
  ::curl_easy_getinfo(handle(), CURLINFO_RESPONSE_CODE, &status);
  if (request_.sink && status >= 200 && status < 300) return Feed(bytes);
  if (response_.body.size() + bytes.size() > request_.limits.body_bytes_max) {
    Refuse(Outcome::kTooLong, fmt::format("the answer is too long, expected at most {}",
                                          HumanBytes(request_.limits.body_bytes_max)));
    return false;
  }
  response_.body.append(bytes);
  return true;
}

// An exception must not cross libcurl.
bool Transfer::Feed(std::string_view bytes) {
  try {
    response_.sink_bytes += bytes.size();
    if (request_.sink(bytes)) return true;
  } catch (...) {
    response_.thrown = std::current_exception();
  }
  Refuse(Outcome::kStopped, "the rest of the answer was not wanted");
  return false;
}

Response Transfer::End(CURLcode result) {
  if (!ended_here_) SetFailure(result, words_, &response_);
  if (response_.answered() && !header_ended_) {  // libcurl takes it for an empty body
    Refuse(Outcome::kBroken, "the connection ended within the answer's header");
  }
  long status = 0;
  curl_off_t seconds = 0;
  char* location = nullptr;
  ::curl_easy_getinfo(handle(), CURLINFO_RESPONSE_CODE, &status);
  ::curl_easy_getinfo(handle(), CURLINFO_RETRY_AFTER, &seconds);
  ::curl_easy_getinfo(handle(), CURLINFO_REDIRECT_URL, &location);
  response_.status = static_cast<int>(status);
  response_.retry_after_s = static_cast<double>(seconds);
  if (location != nullptr) response_.location = location;
  ::curl_easy_reset(handle());
  return std::move(response_);
}

}  // namespace evald::http_client
