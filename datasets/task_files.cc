#include "datasets/task_files.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kTaskFileBytesMax = uint64_t{16} << 20;

/// `path` relative to `folder`; "" if it lies outside.
std::string Below(const fs::path& folder, const fs::path& path) {
  const fs::path inside = path.lexically_relative(folder);
  return inside.empty() || *inside.begin() == ".." ? "" : inside.string();
}

}  // namespace

TaskFiles::TaskFiles(const std::vector<fs::path>& task_dirs, const ReadRoots& roots) {
  std::vector<fs::path> own;
  for (const fs::path& folder : task_dirs) own.push_back(fs::absolute(folder).lexically_normal());
  // Without roots, too, links lead to no other place: a folder of tasks may be a stranger's.
  const ReadRoots within = roots.anywhere() ? ReadRoots(own) : roots;
  for (const fs::path& folder : own) folders_.emplace_back(folder, within);
}

WantedFile TaskFiles::Wanted(const std::string& path) const {
  for (const ReadFolder& folder : folders_) {
    const std::string inside = Below(folder.path(), fs::path(path).lexically_normal());
    if (inside.empty() || !folder.exists()) continue;
    if (folder.HasFolder(inside)) return {WantedFile::Kind::kFolder, ""};
    if (folder.HasFile(inside))
      return {WantedFile::Kind::kFile, folder.Read(inside, kTaskFileBytesMax)};
  }
  return {};
}

std::vector<std::string> TaskFiles::Folders() const {
  std::vector<std::string> names;
  for (const ReadFolder& folder : folders_) names.push_back(folder.path().string());
  return names;
}

}  // namespace evald
