#include "fetch/download.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/sha256.h"
#include "base/text.h"
#include "fetch/content_hash.h"
#include "fetch/part_file.h"
#include "http_client/url.h"

namespace evald::fetch {
namespace fs = std::filesystem;
namespace {

using http_client::Fields;
using http_client::Request;
using http_client::Response;

std::string FieldOf(const Fields& fields, const char* name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second;
}

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Content-Range: bytes 5-9/10
struct Range {
  uint64_t first = 0;
  std::optional<uint64_t> total;
};

std::optional<Range> ParseRange(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos) return std::nullopt;
  const auto first = Number(Trim(text.substr(0, dash)));
  if (!first) return std::nullopt;
  return Range{*first, Number(Trim(text.substr(slash + 1)))};
}

// Only a strong ETag says that two contents are equal byte by byte (RFC 9110, section 8.8.1).
bool IsStrong(const std::string& etag) { return !etag.empty() && !etag.starts_with("W/"); }

bool KnowsContent(const Source& source) {
  return !source.sha256.empty() || !source.git_blob.empty();
}

// One download: the part file and what is asked for next.
class Downloading {
 public:
  Downloading(const Source& source, const fs::path& target, Caller* caller,
              std::atomic<int64_t>* came)
      : source_(source), part_(target), caller_(caller), came_(came) {}

  Downloaded Run() {
    KeepOrClear();
    Count(static_cast<int64_t>(part_.bytes()));
    while (true) {
      const bool kept = part_.bytes() > 0;
      if (!IsWhole()) FetchRest();
      try {
        const std::string sha256 = CheckContent(source_, part_.fd(), source_.url);
        const uint64_t bytes = part_.bytes();
        part_.Commit();
        return {bytes, fetched_, sha256};
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kInput) throw;
        Empty();  // so that no later call continues these bytes
        if (!kept || again_) throw;
        again_ = true;
      }
    }
  }

 private:
  // Bytes of an earlier call count if the server can say that they are of the file that it has now,
  // or the hash will.
  void KeepOrClear() {
    if (part_.bytes() == 0) return;
    const bool same_url = part_.origin().url == http_client::Shown(source_.url);
    const bool too_many = source_.bytes && part_.bytes() > *source_.bytes;
    const bool kept = KnowsContent(source_) || (same_url && IsStrong(part_.origin().etag));
    if (too_many || !kept) part_.Clear();
  }

  // Without a known size, a server's word on the size counts; a part that was left whole was
  // checked then, or is checked now.
  bool IsWhole() const {
    const std::optional<uint64_t> bytes = source_.bytes ? source_.bytes : part_.origin().bytes;
    return bytes && part_.bytes() == *bytes && part_.bytes() > 0;
  }

  void FetchRest() {
    Patience patience(caller_->access());
    while (true) {
      const Answered answer = Ask();
      const Response& response = answer.response;
      if (response.thrown) std::rethrow_exception(response.thrown);
      const bool all = !total_ || part_.bytes() == *total_;
      if (response.ok() && all) return;
      if (too_long_) throw WrongSize(part_.bytes());
      if (response.ok()) throw WrongSize(part_.bytes());
      if (response.answered() && response.status == 416 && part_.bytes() > 0) {
        Empty();
        continue;  // the file there is shorter than the part
      }
      // A server that begins anew each time brings bytes without end.
      if (part_.bytes() > most_) patience.Renew();
      most_ = std::max(most_, part_.bytes());
      if (!patience.Another(source_.url, response)) throw Refusal(response, patience.attempts());
    }
  }

  Answered Ask() {
    Request request;
    request.url = source_.url;
    if (part_.bytes() > 0) {
      request.headers.emplace_back("Range", fmt::format("bytes={}-", part_.bytes()));
      const PartOrigin& origin = part_.origin();
      if (origin.url == http_client::Shown(source_.url) && IsStrong(origin.etag))
        request.headers.emplace_back("If-Range", origin.etag);
    }
    request.begin = [this](int status, const Fields& fields) { return Begins(status, fields); };
    request.sink = [this](std::string_view bytes) { return Take(bytes); };
    return caller_->Once(std::move(request));
  }

  bool Begins(int status, const Fields& fields) {
    RefusePage(fields);
    std::optional<uint64_t> total = Number(FieldOf(fields, "content-length"));
    const std::optional<Range> range = ParseRange(FieldOf(fields, "content-range"));
    const bool continues = status == 206;
    if (continues && (!range || range->first != part_.bytes())) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: bytes from {} on were asked for, and the server sends '{}'",
                              Name(), part_.bytes(), FieldOf(fields, "content-range")));
    }
    if (continues) total = range->total;
    if (source_.bytes && total && *total != *source_.bytes) throw WrongSize(*total);
    total_ = source_.bytes ? source_.bytes : total;
    if (!continues) {
      Count(-static_cast<int64_t>(part_.bytes()));
      part_.Begin({http_client::Shown(source_.url), FieldOf(fields, "etag"), total_});
    }
    return true;
  }

  // Log-in pages of proxies and pages of errors come with status 200.
  void RefusePage(const Fields& fields) const {
    const std::string path = http_client::ParseUrl(source_.url).path;
    const std::string type = FieldOf(fields, "content-type");
    if (!type.starts_with("text/html") || path.ends_with(".html") || path.ends_with(".htm")) return;
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the server sends a web page (text/html) in place of the file", Name()),
        "check the endpoint, and whether a proxy asks to log in");
  }

  bool Take(std::string_view bytes) {
    too_long_ = total_ && part_.bytes() + bytes.size() > *total_;
    if (too_long_) return false;
    part_.Append(bytes);
    fetched_ += bytes.size();
    Count(static_cast<int64_t>(bytes.size()));
    return true;
  }

  void Empty() {
    Count(-static_cast<int64_t>(part_.bytes()));
    part_.Clear();
  }

  void Count(int64_t bytes) const {
    if (came_ != nullptr) *came_ += bytes;
  }

  std::string Name() const { return http_client::Shown(source_.url); }

  Error WrongSize(uint64_t found) const {
    const uint64_t expected = source_.bytes.value_or(total_.value_or(0));
    return Error(ErrorKind::kInput,
                 fmt::format("{}: expected {} bytes, the server has {}{}", Name(), expected,
                             too_long_ ? "more than " : "", found),
                 "the file may have been replaced: try again");
  }

  Error Refusal(const Response& response, int attempts) const {
    if (response.answered() && source_.refusal) return source_.refusal(response);
    Response told = response;
    told.attempts = attempts;
    return RefusalOf(source_.url, told);
  }

  const Source& source_;
  PartFile part_;
  Caller* caller_;
  std::atomic<int64_t>* came_;
  std::optional<uint64_t> total_;  // of the file, once an answer has begun
  uint64_t fetched_ = 0;
  uint64_t most_ = 0;  // that the part has had
  bool too_long_ = false;
  bool again_ = false;
};

}  // namespace

Downloaded Download(const Source& source, const fs::path& target, Caller* caller,
                    std::atomic<int64_t>* came) {
  return Downloading(source, target, caller, came).Run();
}

std::string CheckContent(const Source& source, int fd, const fs::path& path) {
  const std::string name =
      path.string() == source.url ? http_client::Shown(source.url) : path.string();
  const auto fail = [&](const std::string& what, const std::string& expected,
                        const std::string& found) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: expected the {} {}, found {}", name, what, expected, found));
  };
  struct stat about{};
  if (::fstat(fd, &about) != 0) ThrowErrno(path, "fstat", errno);
  const auto bytes = static_cast<uint64_t>(about.st_size);
  if (source.bytes && bytes != *source.bytes)
    fail("size", std::to_string(*source.bytes), std::to_string(bytes));
  std::string sha256 = Sha256OfFile(fd, path);
  if (!source.sha256.empty() && sha256 != source.sha256) fail("SHA-256", source.sha256, sha256);
  if (!source.git_blob.empty()) {
    const std::string blob = GitBlobOfFile(fd, path);
    if (blob != source.git_blob) fail("git hash", source.git_blob, blob);
  }
  return sha256;
}

}  // namespace evald::fetch
