#include "http_server/target.h"

#include <fmt/format.h>

#include "base/text.h"

namespace evald::http {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

namespace {

bool ParsePath(std::string_view path, Request* request) {
  if (path.empty() || path.front() != '/') return false;
  path.remove_prefix(1);
  if (path.empty()) return true;
  for (const std::string& part : Split(path, '/')) {
    std::optional<std::string> segment = PercentDecode(part);
    if (!segment || *segment == "." || *segment == "..") return false;
    request->path.push_back(std::move(*segment));
  }
  return true;
}

bool ParseQuery(std::string_view query, Request* request) {
  if (query.empty()) return true;
  for (const std::string& part : Split(query, '&')) {
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    std::optional<std::string> name = PercentDecode(std::string_view(part).substr(0, equals), true);
    std::optional<std::string> value =
        PercentDecode(std::string_view(part).substr(std::min(equals + 1, part.size())), true);
    if (!name || !value) return false;
    request->query.emplace_back(std::move(*name), std::move(*value));
  }
  return true;
}

}  // namespace

std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (c == '\0') return std::nullopt;
    decoded += c;
  }
  if (!IsUtf8(decoded)) return std::nullopt;
  return decoded;
}

std::string PercentEncode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    encoded +=
        unreserved ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

bool ParseTarget(Request* request) {
  std::string_view rest = request->target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (rest.size() > scheme.size() && EqualsIgnoringCase(rest.substr(0, scheme.size()), scheme)) {
      rest.remove_prefix(scheme.size());
      const size_t slash = rest.find_first_of("/?");
      request->headers.Set("Host", std::string(rest.substr(0, slash)));
      rest = slash == std::string_view::npos || rest[slash] == '?' ? "/" : rest.substr(slash);
    }
  }
  const size_t mark = std::min(rest.find('?'), rest.size());
  return ParsePath(rest.substr(0, mark), request) &&
         ParseQuery(rest.substr(std::min(mark + 1, rest.size())), request);
}

}  // namespace evald::http
