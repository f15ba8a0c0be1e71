#include "datasets/task_files.h"

#include "evald/error.h"

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
  for (const fs::path& folder : task_dirs) {
    folders_.emplace_back(fs::absolute(folder).lexically_normal(), roots);
  }
}

WantedFile TaskFiles::Wanted(const std::string& path) const {
  WantedFile wanted;
  for (const ReadFolder& folder : folders_) {
    const std::string inside = Below(folder.path(), fs::path(path).lexically_normal());
    if (inside.empty() || !folder.exists()) continue;
    try {
      if (folder.HasFolder(inside)) {
        wanted.kind = WantedFile::Kind::kFolder;
      } else if (folder.HasFile(inside)) {
        wanted.content = folder.Read(inside, kTaskFileBytesMax);
        wanted.kind = WantedFile::Kind::kFile;
      } else {
        continue;
      }
      return wanted;
    } catch (const Error&) {  // it has gone, or is too long
    }
  }
  return {};
}

std::vector<std::string> TaskFiles::Folders() const {
  std::vector<std::string> names;
  for (const ReadFolder& folder : folders_) names.push_back(folder.path().string());
  return names;
}

}  // namespace evald
