#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace evald::dataset_fetch {

/// What a sources.yaml knows of a file.
struct PinnedFile {
  std::optional<uint64_t> bytes;
  std::string sha256;  ///< 64 hexadecimal digits; "": not known
  std::string where;   ///< "file:line"
};

/// Where a dataset comes from: an entry of `hub` in a sources.yaml (docs/fetch.md).
struct HubSource {
  std::string dataset;     ///< dataset_path of task files
  std::string repository;  ///< of the hub
  std::string revision;    ///< a branch, a tag or a commit; "": main
  bool converted = false;  ///< whether the revision is of the hub's branch refs/convert/parquet
  bool gated = false;      ///< whether the hub asks to accept terms
  /// Patterns of the files of each split, if the repository does not say it in a way that is read
  std::vector<std::pair<std::string, std::vector<std::string>>> splits;
  /// Splits that the repository does not have: how they are had otherwise
  std::map<std::string, std::string> elsewhere;
  std::map<std::string, PinnedFile> files;
};

/// The entries of a sources.yaml, by dataset.
using SourceTable = std::map<std::string, HubSource>;

/// Reads the part `hub` of a sources.yaml; `file` names it in errors. Throws Error(kInput)
/// "file:line: ..." for an unknown key, a wrong type, a hash that is none and a path that leads out
/// of the folder.
SourceTable ParseSourceTable(const std::string& text, const std::string& file);

/// The table that is built in: datasets/tasks/sources.yaml.
const SourceTable& BuiltinSourceTable();

/// What `user` says of the dataset, over what `builtin` says; what neither says is derived: the
/// repository has the dataset's name.
HubSource SourceOf(const std::string& dataset, const SourceTable& user, const SourceTable& builtin);

/// The text of a sources.yaml with these entries.
std::string SourceTableText(const SourceTable& table);

}  // namespace evald::dataset_fetch
