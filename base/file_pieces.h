#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace evald {

/// Calls `visit` for each piece of an open file, from its beginning, so that memory does not grow
/// with its size. The place in the file stays as it is. `path` names the file in errors. Throws
/// Error(kInfrastructure) if reading fails.
void ForEachPiece(int fd, const std::filesystem::path& path,
                  const std::function<void(std::string_view piece)>& visit);

}  // namespace evald
