#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace evald::api {

/// A file that an agent sends in pieces.
struct Upload {
  std::filesystem::path target;  ///< the file's name once it is complete
  std::string instance;          ///< the agent's; keeps two agents that send the same file apart
  std::string hash;              ///< XXH3-128 of the whole file
  uint64_t bytes = 0;            ///< of the whole file, as the agent announces
  uint64_t bytes_max = 0;        ///< limit for a file of this kind
  /// Calls the function that gives the complete file its name, or returns false if the agent may no
  /// longer write the file. Null: always calls it.
  std::function<bool(const std::function<void()>& give)> name = nullptr;
};

/// Takes the piece at `offset`. Pieces come in order: a piece may be sent again, and none may leave
/// a gap, so the file never holds more than was sent. After the last piece the file is fsynced and
/// gets its name, if it has its hash. Returns whether the file is complete. Throws ProblemError:
/// 400 if the piece ends after the file, 403 if the agent may no longer write the file, 409 if it
/// leaves a gap, 413 if the file is too large, 422 for a wrong hash, 503 if another piece is being
/// written. Throws Error(kInfrastructure) if the disk fails. Any thread.
bool TakePiece(const Upload& upload, uint64_t offset, std::string_view piece);

}  // namespace evald::api
