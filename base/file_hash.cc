#include "base/file_hash.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/file_pieces.h"
#include "base/hash.h"
#include "evald/error.h"

namespace evald {

FileHash HashOfFile(int fd, const std::filesystem::path& path) {
  FileHash result;
  Hasher hasher;
  ForEachPiece(fd, path, [&](std::string_view piece) {
    hasher.Update(piece);
    result.bytes += piece.size();
  });
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
