#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "evald/json.h"

namespace evald {

/// What a file system says of a file. While a stamp is unchanged, so is the content, as far as the
/// clock of the file system is fine enough (see docs/staging.md); `verify` trusts no stamps.
struct FileStamp {
  std::string name;  ///< relative to the checkpoint's folder
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t mtime_ns = 0;  ///< since 1970
  int64_t ctime_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

Json ToJson(const FileStamp& stamp);
/// Throws Error(kInput) "<where>: ...".
FileStamp StampFromJson(const Json& json, const std::string& where);

/// The stamp of the file `name` of `root`, links followed. Throws Error(kInput) when it is not a
/// regular file.
FileStamp StampFile(const ReadFolder& root, const std::string& name);
/// The stamp of an open file.
FileStamp StampOf(const struct stat& info, const std::string& name);

/// A checkpoint as its file system shows it, found without reading any file.
struct SourceIdentity {
  std::string id;                 ///< hash over the stamps, 32 hexadecimal digits
  std::vector<FileStamp> stamps;  ///< of all CandidateNames, sorted by name
};

/// Throws Error(kInput) as CandidateNames does.
SourceIdentity IdentifySource(const ReadFolder& root);

}  // namespace evald
