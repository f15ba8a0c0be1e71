#include "http_server/encode.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstdlib>

#include "base/hash.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::http {
namespace {

// Smaller bodies gain less than the gzip header costs. Larger ones would hold the server's thread
// for too long.
constexpr size_t kGzipBytesMin = 1400;
constexpr size_t kGzipBytesMax = 4 << 20;

bool Compressible(std::string_view type) {
  for (const std::string_view name : {"application/json", "application/problem+json", "text/",
                                      "application/javascript", "image/svg+xml"}) {
    if (type.starts_with(name)) return true;
  }
  return false;
}

bool Matches(std::string_view if_none_match, std::string_view tag) {
  if (tag.empty()) return false;
  if (Trim(if_none_match) == "*") return true;
  for (const std::string& part : Split(if_none_match, ',')) {
    if (Trim(part) == tag) return true;
  }
  return false;
}

}  // namespace

std::string Gzip(std::string_view text) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (::deflateInit2(&stream, 1, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(ErrorKind::kInternal, "gzip cannot begin");
  }
  std::string packed(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (result != Z_STREAM_END) throw Error(ErrorKind::kInternal, "gzip cannot end");
  return packed;
}

bool AcceptsGzip(std::string_view accept_encoding) {
  for (const std::string& part : Split(accept_encoding, ',')) {
    const size_t semicolon = std::min(part.find(';'), part.size());
    const std::string_view coding = Trim(std::string_view(part).substr(0, semicolon));
    if (!EqualsIgnoringCase(coding, "gzip") && coding != "*") continue;
    const size_t quality = part.find("q=", semicolon);
    return quality == std::string::npos || std::strtod(part.c_str() + quality + 2, nullptr) > 0;
  }
  return false;
}

void Encode(const Request& request, Response* response) {
  Headers& headers = response->headers;
  if (headers.Find("X-Content-Type-Options") == nullptr)
    headers.Add("X-Content-Type-Options", "nosniff");
  const bool in_parts = response->file || response->pieces;
  if (response->events || (!in_parts && response->body.empty())) return;
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (response->status == 200 && is_read && headers.Get("Cache-Control") != "no-store") {
    if (headers.Find("ETag") == nullptr && !in_parts) {
      headers.Add("ETag", fmt::format("W/\"{}\"", HashHex(response->body)));
    }
    if (headers.Find("Cache-Control") == nullptr) headers.Add("Cache-Control", "no-cache");
    if (Matches(request.headers.Get("If-None-Match"), headers.Get("ETag"))) {
      response->status = 304;
      response->body.clear();
      response->file.reset();
      response->pieces.reset();
      return;
    }
  }
  if (in_parts) return;
  if (!Compressible(headers.Get("Content-Type"))) return;
  headers.Add("Vary", "Accept-Encoding");
  const size_t size = response->body.size();
  if (size < kGzipBytesMin || size > kGzipBytesMax) return;
  if (headers.Find("Content-Encoding") != nullptr) return;
  if (!AcceptsGzip(request.headers.Get("Accept-Encoding"))) return;
  response->body = Gzip(response->body);
  headers.Add("Content-Encoding", "gzip");
}

}  // namespace evald::http
