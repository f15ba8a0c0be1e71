#include "orchestrator/api/upload.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/file_hash.h"
#include "base/hash.h"
#include "http_server/problem.h"

namespace evald::api {
namespace {

namespace fs = std::filesystem;
using http::ProblemError;

[[noreturn]] void Busy() {
  throw ProblemError({503,
                      "piece",
                      "another piece of this file is being written",
                      "send one piece after the other",
                      "",
                      {{"Retry-After", "1"}}});
}

// Opens the unfinished file for this call alone, and sets *length to its length.
UniqueFd OpenPart(const fs::path& part, bool from_beginning, uint64_t* length) {
  UniqueFd fd(::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) ThrowErrno(part, "open", errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) Busy();
  struct stat open{}, named{};
  if (::fstat(fd.get(), &open) != 0) ThrowErrno(part, "stat", errno);
  // Between open and lock, another call may have completed this file.
  if (::stat(part.c_str(), &named) != 0 || named.st_ino != open.st_ino) Busy();
  if (from_beginning && ::ftruncate(fd.get(), 0) != 0) ThrowErrno(part, "truncate", errno);
  *length = from_beginning ? 0 : static_cast<uint64_t>(open.st_size);
  return fd;
}

void CheckLimits(const Upload& upload, uint64_t offset, size_t piece) {
  if (upload.bytes > upload.bytes_max) {
    throw ProblemError(
        {413, "file-size",
         fmt::format("the file has {} bytes, at most {} are taken of one of this kind",
                     upload.bytes, upload.bytes_max)});
  }
  if (offset > upload.bytes || piece > upload.bytes - offset) {
    throw ProblemError({400, "piece", "the piece ends after the file"});
  }
}

}  // namespace

bool TakePiece(const Upload& upload, uint64_t offset, std::string_view piece) {
  CheckLimits(upload, offset, piece.size());
  const fs::path part =
      fmt::format("{}.{}.upload", upload.target.string(), HashHex(upload.instance).substr(0, 8));
  uint64_t length = 0;
  const UniqueFd fd = OpenPart(part, offset == 0, &length);
  if (offset > length) {
    throw ProblemError(
        {409, "piece",
         fmt::format("the piece begins at {}, but only {} bytes have come", offset, length),
         "send the pieces in order, from the file's beginning"});
  }
  WriteAt(fd.get(), piece, offset, part);
  if (offset + piece.size() < upload.bytes) return false;
  const FileHash found = HashOfFile(fd.get(), part);
  if (found.bytes != upload.bytes || found.hash != upload.hash) {
    ::unlink(part.c_str());
    throw ProblemError({422, "hash", "the bytes that came do not have this hash",
                        "send the file again from its beginning"});
  }
  if (::fsync(fd.get()) != 0) ThrowErrno(part, "fsync", errno);
  const auto give = [&] {
    fs::rename(part, upload.target);
    FsyncDirectory(upload.target.parent_path());
  };
  if (!upload.name) {
    give();
  } else if (!upload.name(give)) {
    ::unlink(part.c_str());
    throw ProblemError({403, "not-granted", "this agent has no work with this file any more"});
  }
  return true;
}

}  // namespace evald::api
