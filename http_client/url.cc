#include "http_client/url.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>

#include "evald/error.h"

namespace evald::http_client {
namespace {

using CurlUrl = std::unique_ptr<CURLU, void (*)(CURLU*)>;

std::string Part(const CurlUrl& url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (::curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return "";
  const std::unique_ptr<char, void (*)(void*)> held(text, ::curl_free);
  return held.get();
}

CurlUrl Read(const std::string& text) {
  CurlUrl url(::curl_url(), ::curl_url_cleanup);
  const bool http = text.starts_with("http://") || text.starts_with("https://");
  if (http && url && ::curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) == CURLUE_OK) {
    return url;
  }
  return {nullptr, ::curl_url_cleanup};
}

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

Url ParseUrl(const std::string& text) {
  const CurlUrl read = Read(text);
  Url url;
  const std::string host = read ? Lower(Part(read, CURLUPART_HOST)) : "";
  if (host.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}': expected http://host or https://host, and a port after it if "
                            "it is another than 80 or 443",
                            Shown(text)));
  }
  url.tls = Part(read, CURLUPART_SCHEME) == "https";
  const std::string port = Part(read, CURLUPART_PORT);
  url.host = host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
  url.port = static_cast<uint16_t>(
      std::stoi(port.empty() ? Part(read, CURLUPART_PORT, CURLU_DEFAULT_PORT) : port));
  url.authority = port.empty() ? host : host + ":" + port;
  url.path = Part(read, CURLUPART_PATH);
  url.has_user = !Part(read, CURLUPART_USER).empty() || !Part(read, CURLUPART_PASSWORD).empty();
  url.has_query = text.find_first_of("?#") != std::string::npos;
  return url;
}

bool IsLoopback(const Url& url) {
  const bool numbers = url.host.find_first_not_of("0123456789.") == std::string::npos;
  return url.host == "localhost" || url.host == "::1" || (url.host.starts_with("127.") && numbers);
}

bool IsSameOrigin(const std::string& one, const std::string& other) {
  const Url a = ParseUrl(one), b = ParseUrl(other);
  return a.tls == b.tls && a.host == b.host && a.port == b.port;
}

std::string Shown(const std::string& text) {
  const CurlUrl url = Read(text);
  if (!url) {
    const size_t user = text.rfind('@');
    const std::string rest = user == std::string::npos ? text : "…" + text.substr(user);
    return rest.substr(0, rest.find_first_of("?#"));
  }
  for (const CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    ::curl_url_set(url.get(), part, nullptr, 0);
  }
  return Part(url, CURLUPART_URL);
}

}  // namespace evald::http_client
