#include "orchestrator/dataset_fetch/fetched_folder.h"

#include <cerrno>
#include <cstdio>

#include "base/fail_point.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "datasets/hub_folder.h"
#include "evald/error.h"

namespace evald::dataset_fetch {
namespace fs = std::filesystem;
namespace {

constexpr int kVersion = 1;

void WriteFetched(const fs::path& folder, const Fetched& fetched,
                  const std::vector<std::string>& pending) {
  Json splits = Json::array();
  for (const auto& [part, split] : fetched.splits) splits.push_back(Json::array({part, split}));
  Json files = Json::object();
  for (const auto& [path, file] : fetched.files)
    files[path] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
  const Json document = {{"version", kVersion},
                         {"repository", fetched.repository},
                         {"revision", fetched.revision},
                         {"branch", fetched.branch},
                         {"commit", fetched.commit},
                         {"splits", splits},
                         {"files", files},
                         {"pending", pending}};
  WriteFileAtomic(folder / kFetchedFile, document.dump(1) + "\n");
}

}  // namespace

std::optional<Fetched> ReadFetched(const fs::path& folder) {
  const fs::path path = folder / kFetchedFile;
  if (!fs::exists(path)) return std::nullopt;
  if (!fs::is_regular_file(path)) throw Error(ErrorKind::kInput, path.string() + ": is no file");
  const std::string where = path.string();
  const Json document = ParseJson(ReadFile(path), where);
  if (Field<int>(document, "version", where) != kVersion) {
    throw Error(ErrorKind::kInput, where + ": another version of evald wrote this file",
                "move the folder away, and fetch it again");
  }
  Fetched fetched;
  fetched.repository = Field<std::string>(document, "repository", where);
  fetched.revision = Field<std::string>(document, "revision", where);
  fetched.branch = Field<std::string>(document, "branch", where);
  fetched.commit = Field<std::string>(document, "commit", where);
  for (const Json& split : Field<std::vector<Json>>(document, "splits", where)) {
    if (!split.is_array() || split.size() != 2 || !split[0].is_string() || !split[1].is_string())
      throw Error(ErrorKind::kInput, where + ": expected pairs of texts as splits");
    fetched.splits.emplace(split[0], split[1]);
  }
  const Json files = Field<Json>(document, "files", where);
  for (const auto& item : files.items()) {
    if (const std::string wrong = fetch::WrongWithPath(item.key()); !wrong.empty())
      throw Error(ErrorKind::kInput, where + ": the name '" + item.key() + "' " + wrong);
    fetched.files[item.key()] = {Field<uint64_t>(item.value(), "bytes", where),
                                 Field<std::string>(item.value(), "sha256", where)};
  }
  return fetched;
}

void PutInPlace(const fs::path& folder, const Fetched& fetched, const std::vector<ReadyFile>& ready,
                const std::vector<std::string>& gone) {
  std::vector<std::string> pending = gone;
  for (const ReadyFile& file : ready) pending.push_back(file.path);
  if (!pending.empty()) WriteFetched(folder, fetched, pending);
  FailPoint("fetch.before_placing");
  for (const ReadyFile& file : ready) {
    const fs::path target = folder / file.path;
    MakeDirectories(target.parent_path());
    if (::rename(file.staged.c_str(), target.c_str()) != 0) ThrowErrno(target, "rename", errno);
    FsyncDirectory(target.parent_path());
    FailPoint("fetch.after_placed");
  }
  for (const std::string& name : gone) {
    std::error_code ignored;
    fs::remove(folder / name, ignored);
  }
  WriteFetched(folder, fetched, {});
}

}  // namespace evald::dataset_fetch
