#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "evald/error.h"
#include "fetch/caller.h"

namespace evald::fetch {

/// One file of a server, with what is known of its content.
struct Source {
  std::string url;
  std::optional<uint64_t> bytes;
  std::string sha256;    ///< 64 hexadecimal digits; "": not known
  std::string git_blob;  ///< GitBlobOfFile; "": not known
  /// Makes the error for an answer that is not 2xx; null: RefusalOf does
  std::function<Error(const http_client::Response& response)> refusal;
};

struct Downloaded {
  uint64_t bytes = 0;
  uint64_t fetched = 0;  ///< of these, the bytes that came over the network now
  std::string sha256;
};

/// Fetches a file to `target`. Bytes that an earlier call or process left in `<target>.part` are
/// kept if they are of the same content: the server continues only the file with the same ETag
/// (If-Range), or the content's hash is known. A file that was replaced meanwhile begins anew. A
/// connection that breaks is continued; the attempts are those of `caller`'s access, counted from
/// the last one that brought bytes. `target` appears complete, checked and fsynced, or not at all.
/// A `target` that is there already is fetched again.
///
/// `*came` (may be null) follows the bytes that are there: it may also go back.
///
/// Throws Error: kInput for a refusal, and for a content that is not the expected one: another size
/// or hash, or a web page (text/html) in place of a file whose name does not end with .html;
/// kInfrastructure for the network and the disk.
Downloaded Download(const Source& source, const std::filesystem::path& target, Caller* caller,
                    std::atomic<int64_t>* came = nullptr);

/// Throws Error(kInput) unless the file has the content of `source`. Returns its SHA-256.
std::string CheckContent(const Source& source, int fd, const std::filesystem::path& path);

}  // namespace evald::fetch
