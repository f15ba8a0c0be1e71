#include "base/file_hash.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/hash.h"
#include "evald/error.h"

namespace evald {
namespace {
constexpr size_t kPieceBytes = 1 << 20;
}

FileHash HashOfFile(int fd, const std::filesystem::path& path) {
  FileHash result;
  Hasher hasher;
  std::string piece(kPieceBytes, '\0');
  while (true) {
    const ssize_t got = ::pread(fd, piece.data(), piece.size(), static_cast<off_t>(result.bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowErrno(path, "read", errno);
    if (got == 0) break;
    hasher.Update(piece.data(), static_cast<size_t>(got));
    result.bytes += static_cast<uint64_t>(got);
  }
  result.hash = hasher.Hex();
  return result;
}

FileHash HashOfFile(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", path.string(), std::strerror(errno)));
  return HashOfFile(fd.get(), path);
}

}  // namespace evald
