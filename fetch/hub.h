#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fetch/caller.h"
#include "fetch/download.h"

namespace evald::fetch {

/// A file of a repository of the hub, as the hub lists it.
struct HubFile {
  std::string path;  ///< relative; no part of it is "", "." or ".."
  uint64_t bytes = 0;
  std::string sha256;    ///< of a file in large-file storage (lfs.oid), else ""
  std::string git_blob;  ///< of a file in git itself (oid), else ""
};

enum class HubKind { kDataset, kModel };

/// A repository of the hub.
struct HubRepository {
  HubKind kind = HubKind::kDataset;
  std::string name;  ///< "owner/name", or "name" of an old one

  /// The page that people see.
  std::string Page(const std::string& endpoint) const;
};

/// Throws Error(kInput) unless the text may be the name of a repository.
void RequireRepositoryName(const std::string& name);

/// Why a path of a repository would lead out of the folder that it is put in, or cannot be a file's
/// name; "" if it would not. Also for a path that others could take for another one (control
/// characters, a backslash).
std::string WrongWithPath(const std::string& path);

/// The files of one page of a repository's list, as the hub's tree route answers it. Throws
/// Error(kInput) naming `where`: for other JSON, and for a path with something wrong.
std::vector<HubFile> ParseFileList(const std::string& body, const std::string& where);

/// Asks the Hugging Face hub, or a mirror or proxy of it at access.endpoint, over its API:
/// `/api/datasets/<name>/revision/<rev>`, `/api/datasets/<name>/tree/<rev>?recursive=true` and
/// `/datasets/<name>/resolve/<rev>/<path>` (as huggingface_hub 1.x calls them). Throws Error:
/// kInput for what the hub refuses or does not have, with the remedy; kInfrastructure for the
/// network. One thread at a time.
class Hub {
 public:
  /// `access` outlives this.
  explicit Hub(const Access& access) : caller_(access) {}

  /// The commit that a branch, a tag or a commit stands for: 40 hexadecimal digits.
  std::string Commit(const HubRepository& repository, const std::string& revision);
  /// The same; nothing if the repository has no such revision.
  std::optional<std::string> FindCommit(const HubRepository& repository,
                                        const std::string& revision);
  /// All files of a commit. Throws also if one has a path with something wrong (WrongWithPath), and
  /// if there are more than 100,000.
  std::vector<HubFile> Files(const HubRepository& repository, const std::string& commit);
  /// A small text file as a whole, checked like Download's.
  std::string Read(const HubRepository& repository, const std::string& commit, const HubFile& file);
  /// What Download needs for a file.
  Source SourceOf(const HubRepository& repository, const std::string& commit,
                  const HubFile& file) const;

 private:
  Answered Get(const std::string& url);
  const Access& access() const { return caller_.access(); }

  Caller caller_;
};

}  // namespace evald::fetch
