#include "http_server/file_answer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <memory>
#include <string>

#include "http_server/problem.h"

namespace evald::http {

std::optional<std::pair<uint64_t, uint64_t>> RangeOf(const Request& request, uint64_t bytes) {
  const std::string* field = request.headers.Find("Range");
  if (field == nullptr) return std::nullopt;
  uint64_t first = 0, last = 0;
  const char* end = field->data() + field->size();
  const bool known = field->starts_with("bytes=");
  const auto begun = std::from_chars(field->data() + (known ? 6 : 0), end, first);
  const bool dash = known && begun.ec == std::errc() && begun.ptr != end && *begun.ptr == '-';
  const auto ended = dash ? std::from_chars(begun.ptr + 1, end, last) : begun;
  if (!dash || ended.ec != std::errc() || ended.ptr != end || last < first || last >= bytes) {
    throw ProblemError({416,
                        "range",
                        fmt::format("expected Range: bytes=first-last within {} bytes", bytes),
                        "",
                        "",
                        {{"Content-Range", fmt::format("bytes */{}", bytes)}}});
  }
  return std::make_pair(first, last);
}

Response FileAnswer(const Request& request, UniqueFd file) {
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    throw ProblemError({404, "not-found", "there is no such file"});
  }
  const auto bytes = static_cast<uint64_t>(info.st_size);
  const auto range = RangeOf(request, bytes);
  Response response;
  response.headers.Add("Content-Type", "application/octet-stream");
  response.headers.Add("Cache-Control", "no-store");
  response.file = std::make_shared<FileBody>();
  response.file->fd = std::move(file);
  response.file->bytes = bytes;
  if (range) {
    response.status = 206;
    response.headers.Add("Content-Range",
                         fmt::format("bytes {}-{}/{}", range->first, range->second, bytes));
    response.file->begin = range->first;
    response.file->bytes = range->second - range->first + 1;
  }
  return response;
}

}  // namespace evald::http
