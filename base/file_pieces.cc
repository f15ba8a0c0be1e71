#include "base/file_pieces.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/file.h"

namespace evald {

void ForEachPiece(int fd, const std::filesystem::path& path,
                  const std::function<void(std::string_view piece)>& visit) {
  std::string piece(size_t{1} << 20, '\0');
  off_t offset = 0;
  while (true) {
    const ssize_t got = ::pread(fd, piece.data(), piece.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowErrno(path, "read", errno);
    if (got == 0) return;
    visit(std::string_view(piece).substr(0, static_cast<size_t>(got)));
    offset += got;
  }
}

}  // namespace evald
