#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace evald::api {

/// A file that an agent gives, piece after piece.
struct Upload {
  std::filesystem::path target;  ///< the name that the file gets once it is whole
  std::string instance;          ///< the agent's; two agents that give the same file do not meet
  std::string hash;              ///< XXH3-128 of the whole file
  uint64_t bytes = 0;            ///< of the whole file, as the agent announces it
  uint64_t bytes_max = 0;        ///< what a file of this kind may have
};

/// Takes the piece at `offset`. Pieces come in order: one may be sent again, none may leave a gap,
/// so that the file never holds more than was sent. The last piece makes the file, fsynced and
/// under its name, if it is what its hash says. Gives whether the file is whole. Throws
/// ProblemError: 400 for a piece that ends after the file, 409 for one that leaves a gap, 413 for
/// too large a file, 422 for a wrong hash, 503 for one that comes while another one is being
/// written; Error(kInfrastructure) when the disk fails. Any thread.
bool TakePiece(const Upload& upload, uint64_t offset, std::string_view piece);

}  // namespace evald::api
