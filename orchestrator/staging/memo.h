#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/staging/identity.h"

namespace evald {

/// What is known of a source whose fingerprint was computed. Kept in the memo and, as
/// `.evald-staged.json`, in the staged folder (docs/staging.md).
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

/// Whether the shards in subfolders of `root` are still what the record says.
bool NestedUnchanged(const StagedRecord& record, const ReadFolder& root);

/// From source identity to fingerprint, over the life of many runs: one small file an identity,
/// `<folder>/<source_id>.json`, the oldest removed beyond 512. A memo saves time and decides
/// nothing, so what cannot be read or written is logged and passed over.
class StagingMemo {
 public:
  /// An empty folder name makes a memo that remembers nothing.
  explicit StagingMemo(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::optional<StagedRecord> Find(const std::string& source_id) const;
  void Store(const StagedRecord& record) const;
  void Forget(const std::string& source_id) const;

 private:
  void Prune() const;

  std::filesystem::path folder_;
};

}  // namespace evald
