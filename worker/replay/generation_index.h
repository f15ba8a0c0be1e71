#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/read_roots.h"
#include "evald/generation.h"
#include "worker/engine/request_key.h"

namespace evald {

/// Finds generations in files by task and key. The files are mapped; the index takes about 64 bytes
/// a line. Once the index is made, any thread may read it.
class GenerationIndex {
 public:
  /// `path`: see MakeReplayEngine. All files are read below `roots`. Half-written files (*.part)
  /// and files that did not count (*.superseded) are skipped. Throws Error(kInput) if the path does
  /// not exist or holds no generations, if a line is no generation, or if two lines of one key
  /// differ (nothing tells which of them counted); the error for a line names its file and number.
  explicit GenerationIndex(const std::filesystem::path& path, const ReadRoots& roots = {});

  /// Throws Error(kInput) if there is no such generation, or if it is of another kind.
  Generation Find(const std::string& task, const RequestKey& key, RequestKind kind);

  uint64_t bytes() const { return bytes_; }
  int64_t lines() const { return lines_; }
  int64_t duplicates() const { return duplicates_; }  ///< lines equal to an earlier one

 private:
  struct Place {
    size_t file = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  using Places = std::map<RequestKey, Place>;

  void CheckEqual(const std::string& task, const Generation& generation, const Place& first,
                  const std::string& where) const;
  void AddFile(const UniqueFd& fd, const std::filesystem::path& path, const std::string& task);
  void AddFolder(const ReadFolder& folder);
  const Places& PlacesOf(const std::string& task);

  std::filesystem::path path_;
  std::vector<std::pair<std::string, MappedFile>> files_;
  std::map<std::string, Places> tasks_;  ///< a single file's lines are under ""
  std::string claimed_by_;               ///< the task that a single file answers for
  uint64_t bytes_ = 0;
  int64_t lines_ = 0;
  int64_t duplicates_ = 0;
};

}  // namespace evald
