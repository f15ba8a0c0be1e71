#include "orchestrator/agent/file_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr long kConnectSeconds = 10;
constexpr long kSilenceSeconds = 30;  // below one byte a second for so long
constexpr size_t kRefusalBytesMax = 64 * 1024;

// Where an answer's bytes go: to a file from `offset` on, or else into `text`.
struct Sink {
  std::string text;
  int fd = -1;
  uint64_t offset = 0, left = 0;
  CURL* curl = nullptr;

  static size_t TakeSome(char* data, size_t, size_t bytes, void* self) {
    return static_cast<Sink*>(self)->Take({data, bytes});
  }

  size_t Take(std::string_view bytes) {
    long status = 0;
    ::curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (fd < 0 || status >= 300) {
      if (status >= 300 && text.size() > kRefusalBytesMax) return 0;
      text += bytes;
      return bytes.size();
    }
    if (bytes.size() > left) return 0;  // more than was asked for
    for (std::string_view rest = bytes; !rest.empty();) {
      const ssize_t wrote = ::pwrite(fd, rest.data(), rest.size(), static_cast<off_t>(offset));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return 0;
      rest.remove_prefix(static_cast<size_t>(wrote));
      offset += static_cast<uint64_t>(wrote);
      left -= static_cast<uint64_t>(wrote);
    }
    return bytes.size();
  }
};

int StopAsked(void* cancel, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(cancel)->load() ? 1 : 0;
}

}  // namespace

struct FileClient::State {
  OrchestratorAddress address;
  const std::atomic<bool>* cancel;
  std::unique_ptr<CURL, void (*)(CURL*)> curl{::curl_easy_init(), ::curl_easy_cleanup};

  void Do(const std::string& method, const std::string& path, const std::string& range,
          std::string_view body, Sink* sink);
};

FileClient::FileClient(const OrchestratorAddress& address, const std::atomic<bool>* cancel) {
  static const CURLcode started = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(started);
  state_ = std::make_unique<State>(State{address, cancel});
  if (!state_->curl) throw Error(ErrorKind::kInfrastructure, "libcurl cannot begin");
}

FileClient::~FileClient() = default;

void FileClient::State::Do(const std::string& method, const std::string& path,
                           const std::string& range, std::string_view body, Sink* sink) {
  CURL* handle = curl.get();
  ::curl_easy_reset(handle);
  sink->curl = handle;
  const std::string url = address.server + path, bearer = "Authorization: Bearer " + address.token;
  curl_slist* list = ::curl_slist_append(nullptr, "Expect:");
  if (!address.token.empty()) list = ::curl_slist_append(list, bearer.c_str());
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, ::curl_slist_free_all);
  ::curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  ::curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, method.c_str());
  ::curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  ::curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(handle, CURLOPT_PROXY, "");
  ::curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  ::curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  ::curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, kSilenceSeconds);
  if (!address.ca_file.empty()) ::curl_easy_setopt(handle, CURLOPT_CAINFO, address.ca_file.c_str());
  if (!range.empty()) ::curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  if (method == "PUT") {
    ::curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.data());
    ::curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  }
  ::curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, Sink::TakeSome);
  ::curl_easy_setopt(handle, CURLOPT_WRITEDATA, sink);
  ::curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  ::curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, StopAsked);
  ::curl_easy_setopt(handle, CURLOPT_XFERINFODATA, const_cast<std::atomic<bool>*>(cancel));
  const CURLcode result = ::curl_easy_perform(handle);
  if (result != CURLE_OK) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: {}", url, ::curl_easy_strerror(result)));
  }
  long status = 0;
  ::curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) return;
  std::string detail = fmt::format("status {}", status);
  try {
    detail =
        FieldOr<std::string>(ParseJson(sink->text, "the answer"), "detail", detail, "the answer");
  } catch (const Error&) {
  }
  const bool again =
      status >= 500 || status == 408 || status == 409 || status == 422 || status == 429;
  throw Error(again ? ErrorKind::kInfrastructure : ErrorKind::kUsage,
              fmt::format("{}: {}", url, detail));
}

std::string FileClient::Get(const std::string& path) {
  Sink sink;
  state_->Do("GET", path, "", "", &sink);
  return std::move(sink.text);
}

void FileClient::GetRange(const std::string& path, uint64_t first, uint64_t count, int fd) {
  if (count == 0) return;
  Sink sink;
  sink.fd = fd;
  sink.offset = first;
  sink.left = count;
  state_->Do("GET", path, fmt::format("{}-{}", first, first + count - 1), "", &sink);
  if (sink.left > 0) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}{}: {} bytes are missing", state_->address.server, path, sink.left));
  }
}

void FileClient::Put(const std::string& path, std::string_view body) {
  Sink sink;
  state_->Do("PUT", path, "", body, &sink);
}

}  // namespace evald
