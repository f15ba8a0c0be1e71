#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace evald::fetch {

/// Whose bytes a part file has.
struct PartOrigin {
  std::string url;                ///< without user and query
  std::string etag;               ///< as the server gave it; "": none
  std::optional<uint64_t> bytes;  ///< of the whole file, if the server said
  bool operator==(const PartOrigin&) const = default;
};

/// A file on its way: `<target>.part` has the bytes that came, `<target>.part.json` whose they are.
/// Both stay if this is destroyed, so that a later process goes on. One thread, and one process, at
/// a time.
class PartFile {
 public:
  /// Opens or makes the part; makes the folders above it. A part whose origin is not readable is
  /// emptied. Throws Error(kInfrastructure).
  explicit PartFile(std::filesystem::path target);

  uint64_t bytes() const { return bytes_; }
  const PartOrigin& origin() const { return origin_; }
  const std::filesystem::path& path() const { return part_; }
  int fd() const { return fd_.get(); }

  /// Empties the part; what is appended from now on is of `origin`.
  void Begin(PartOrigin origin);
  /// Empties the part, and forgets whose it is.
  void Clear();
  /// Appends. Throws Error(kInfrastructure), for a full disk with that said.
  void Append(std::string_view bytes);
  /// fsync, rename to the target, fsync of the folder. The object is not used any more.
  void Commit();

 private:
  std::filesystem::path target_, part_, about_;
  UniqueFd fd_;
  uint64_t bytes_ = 0;
  PartOrigin origin_;
};

}  // namespace evald::fetch
