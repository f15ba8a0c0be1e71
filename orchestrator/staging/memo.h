#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/staging/identity.h"

namespace evald {

/// A source whose fingerprint was computed. Kept in the memo and, as `.evald-staged.json`, in the
/// staged folder (docs/staging.md).
struct StagedRecord {
  std::string fingerprint;
  std::string source;             ///< path of the checkpoint's folder
  std::string source_id;          ///< SourceIdentity::id when it was read
  std::vector<FileStamp> nested;  ///< shards in subfolders, which the id does not cover
  uint64_t bytes = 0;
  double staged_at = 0;  ///< seconds since 1970
};

Json ToJson(const StagedRecord& record);
/// Throws Error(kInput) "<where>: ...".
StagedRecord RecordFromJson(const Json& json, const std::string& where);

/// Whether the shards in subfolders of `root` still have the stamps in the record.
bool NestedUnchanged(const StagedRecord& record, const ReadFolder& root);

/// Fingerprints by source identity, kept over many runs. Each identity is one small file,
/// `<folder>/<source_id>.json`; the oldest beyond 512 are removed. A memo saves time and decides
/// nothing, so a file that cannot be read or written is only logged.
class StagingMemo {
 public:
  /// With an empty folder name the memo remembers nothing.
  explicit StagingMemo(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::optional<StagedRecord> Find(const std::string& source_id) const;
  void Store(const StagedRecord& record) const;
  void Forget(const std::string& source_id) const;

 private:
  void Prune() const;

  std::filesystem::path folder_;
};

}  // namespace evald
