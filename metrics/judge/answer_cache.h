#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "metrics/judge/completion.h"

namespace evald {

/// The document for which a judge was asked. Its run pays for the answer.
struct AskedFor {
  std::string run;
  std::string task;
  int64_t document = 0;
  bool operator==(const AskedFor&) const = default;
};

/// An answer that is kept.
struct KeptAnswer {
  Completion completion;
  AskedFor asked_for;
};

/// The answers of judges by what was asked, one file each: `<folder>/<2 digits>/<key>.json`. Any
/// number of processes may use a folder at once. An answer is kept as soon as it is whole, so a
/// call that was answered is never made again, whatever happens to the process. A damaged file
/// counts as absent. One thread at a time.
///
/// Each of the 256 folders has at most kAnswersPerFolderMax files; the oldest go first.
class AnswerCache {
 public:
  static constexpr size_t kAnswersPerFolderMax = 8192;

  /// `folder` is made when the first answer is kept. With an empty path answers are kept in memory.
  explicit AnswerCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The key of a call: half of a SHA-256 of the server's URL and the call's body, which names the
  /// model.
  static std::string KeyOf(const std::string& base_url, const std::string& body);

  std::optional<KeptAnswer> Find(const std::string& key) const;
  /// Throws Error(kInfrastructure) for a full disk.
  void Keep(const std::string& key, const KeptAnswer& answer);

 private:
  std::filesystem::path FileOf(const std::string& key) const;
  void MakeRoom(const std::filesystem::path& folder);

  std::filesystem::path folder_;
  std::map<std::filesystem::path, size_t> counts_;  // files, of folders that were written to
  std::map<std::string, KeptAnswer> in_memory_;
};

}  // namespace evald
