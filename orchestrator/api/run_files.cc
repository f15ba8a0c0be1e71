#include "orchestrator/api/run_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace evald::api {

namespace {

void Describe(const struct stat& info, RunFile* file) {
  file->bytes = static_cast<uint64_t>(info.st_size);
  file->version = fmt::format("{:x}-{:x}-{:x}-{:x}.{:x}", info.st_dev, info.st_ino, info.st_size,
                              info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace

RunFile RunFileOf(UniqueFd fd) {
  RunFile file;
  file.fd = std::move(fd);
  struct stat info{};
  if (::fstat(file.fd.get(), &info) != 0) ThrowErrno("a run's file", "looking at", errno);
  Describe(info, &file);
  return file;
}

RunFile OpenRunFile(const std::filesystem::path& directory, const std::string& name) {
  RunFile file;
  if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
    return file;
  const UniqueFd folder(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return file;
  file.fd.reset(
      ::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.fd) {
    if (errno == ENOENT || errno == ELOOP || errno == ENAMETOOLONG) return file;
    ThrowErrno(directory / name, "opening", errno);
  }
  struct stat info{};
  if (::fstat(file.fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    file.fd.reset();
    return file;
  }
  Describe(info, &file);
  return file;
}

}  // namespace evald::api
