#pragma once

#include <cstdint>
#include <string>

namespace evald::http_client {

/// The parts of an http or https URL, as libcurl reads it, so that what is checked is what is
/// called: "http://127.1" has the host 127.0.0.1.
struct Url {
  bool tls = false;
  std::string host;       ///< lower case; an IPv6 address without brackets
  uint16_t port = 0;      ///< 80 or 443 if the URL names none
  std::string authority;  ///< for the field Host: "[::1]:8642"; without a user
  std::string path;       ///< "/" at least
  bool has_user = false;
  bool has_query = false;  ///< or a fragment
};

/// Throws Error(kUsage) if the text is no http or https URL.
Url ParseUrl(const std::string& text);

/// Whether calls to this host stay on this machine: localhost, 127.0.0.0/8, ::1.
bool IsLoopback(const Url& url);

/// Whether both URLs have one scheme, host and port. Throws like ParseUrl.
bool IsSameOrigin(const std::string& one, const std::string& other);

/// A URL for people and logs: without user, password, query and fragment, which may hold secrets.
std::string Shown(const std::string& text);

}  // namespace evald::http_client
