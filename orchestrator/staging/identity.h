#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "evald/json.h"

namespace evald {

/// A file's metadata from its file system. An unchanged stamp means unchanged content, as far as
/// the file system's clock is fine enough (docs/staging.md). `verify` trusts no stamps.
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

/// The stamp of the file `name` of `root`, with links followed. Throws Error(kInput) if it is not a
/// regular file.
FileStamp StampFile(const ReadFolder& root, const std::string& name);
/// The stamp of an open file.
FileStamp StampOf(const struct stat& info, const std::string& name);

/// A checkpoint's identity from its file system, found without reading any file.
struct SourceIdentity {
  std::string id;                 ///< hash over the stamps, 32 hexadecimal digits
  std::vector<FileStamp> stamps;  ///< of all CandidateNames, sorted by name
};

/// Throws Error(kInput) like CandidateNames.
SourceIdentity IdentifySource(const ReadFolder& root);

}  // namespace evald
