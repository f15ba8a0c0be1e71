#include "base/own_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr mode_t kMode = 0700;
constexpr int kAttempts = 10;  // another process may remove an empty folder meanwhile
constexpr size_t kPasswordBytes = 64 * 1024;

[[noreturn]] void Refuse(const fs::path& folder, const std::string& what, std::string_view remedy) {
  throw Error(ErrorKind::kUsage, fmt::format("{}: {}", folder.string(), what), std::string(remedy));
}

std::string Mode(const struct stat& info) { return fmt::format("mode {:o}", info.st_mode & 07777); }

// Checks the folders above, by their written names and with links followed. A user who may write to
// one of them could exchange the folder later.
void CheckWay(const fs::path& folder, const fs::path& way, std::string_view remedy) {
  bool all_may_write = false;  // to the folder before this one
  fs::path at;
  for (const fs::path& part : way) {
    at /= part;
    struct stat info{};
    if (::lstat(at.c_str(), &info) != 0)
      Refuse(folder, fmt::format("{}: {}", at.string(), std::strerror(errno)), remedy);
    if (all_may_write && info.st_uid != ::geteuid() && info.st_uid != 0) {
      Refuse(folder,
             fmt::format("lies below {}, which belongs to user {}, where every user may make "
                         "folders; expected {}",
                         at.string(), info.st_uid, ::geteuid()),
             remedy);
    }
    all_may_write = !S_ISLNK(info.st_mode) && (info.st_mode & S_IWOTH) != 0;
    if (all_may_write && (info.st_mode & S_ISVTX) == 0) {
      Refuse(
          folder,
          fmt::format("lies below {}, where every user may rename it ({} without the sticky bit)",
                      at.string(), Mode(info)),
          remedy);
    }
  }
}

// Makes all missing folders, the last one too.
void Make(const fs::path& folder, std::string_view remedy) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = folder; at.has_relative_path() && !fs::exists(fs::symlink_status(at, error));
       at = at.parent_path()) {
    missing.push_back(at);
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    const int number = MakeFolder(*at, kMode);
    // ENOENT: another process removes the new, empty folder. The caller tries again.
    if (number != 0 && number != EEXIST && number != ENOENT) {
      if (number == ENOSPC || number == EDQUOT || number == EIO)
        ThrowErrno(*at, "make this folder", number);
      Refuse(folder, fmt::format("cannot be made: {}", std::strerror(number)), remedy);
    }
    // A power cut must not remove a folder whose content was fsynced
    FsyncDirectory(at->parent_path());
  }
}

// `fd` is the folder's, or -1 if open() has just failed.
void CheckOwn(const fs::path& folder, int fd, std::string_view remedy) {
  struct stat info{};
  if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
    Refuse(folder, "is not a folder, or is a symbolic link", remedy);
  if (fd < 0 && errno == EACCES && ::lstat(folder.c_str(), &info) == 0 &&
      info.st_uid != ::geteuid()) {
    Refuse(folder, fmt::format("belongs to user {}, expected {}", info.st_uid, ::geteuid()),
           remedy);
  }
  if (fd < 0 || ::fstat(fd, &info) != 0)
    Refuse(folder, fmt::format("cannot be opened: {}", std::strerror(errno)), remedy);
  if (info.st_uid != ::geteuid()) {
    Refuse(folder, fmt::format("belongs to user {}, expected {}", info.st_uid, ::geteuid()),
           remedy);
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    Refuse(folder, fmt::format("may be written by others ({})", Mode(info)),
           fmt::format("if all in it is yours: chmod go-w {}; else {}", folder.string(), remedy));
  }
  // Another process may remove an empty folder now (ENOENT): the user of the folder will find it
  // absent.
  if (::faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0 && errno != ENOENT) {
    Refuse(folder, fmt::format("cannot be written: {}", std::strerror(errno)), remedy);
  }
}

// The absolute path without "." and "..", and without a slash at its end.
fs::path Plain(const fs::path& folder) {
  const fs::path normal = fs::absolute(folder).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

UniqueFd Own(const fs::path& given, std::string_view remedy) {
  const fs::path folder = Plain(given);
  UniqueFd fd;
  for (int attempt = 0; !fd && attempt < kAttempts; ++attempt) {
    Make(folder, remedy);
    fd.reset(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd && errno != ENOENT) break;
  }
  CheckOwn(folder, fd.get(), remedy);
  CheckWay(folder, folder.parent_path(), remedy);
  std::error_code error;
  const fs::path real = fs::canonical(folder.parent_path(), error);
  if (error) Refuse(folder, error.message(), remedy);
  if (real != folder.parent_path()) CheckWay(folder, real, remedy);
  return fd;
}

}  // namespace

void MakeOwnFolder(const fs::path& folder, std::string_view remedy) { Own(folder, remedy); }

void MakePrivateFolder(const fs::path& folder, std::string_view remedy) {
  const UniqueFd fd = Own(folder, remedy);
  struct stat info{};
  if (::fstat(fd.get(), &info) == 0 && (info.st_mode & 07777) == kMode) return;
  if (::fchmod(fd.get(), kMode) != 0) ThrowErrno(folder, "chmod 0700", errno);
}

std::string WhyNotOwn(const fs::path& folder) {
  struct stat info{};
  if (::stat(folder.c_str(), &info) != 0) return "";
  if (info.st_uid != ::geteuid())
    return fmt::format("belongs to user {}, expected {}", info.st_uid, ::geteuid());
  if ((info.st_mode & S_IWOTH) != 0)
    return fmt::format("may be written by every user ({})", Mode(info));
  return "";
}

void DenyOthersWriting() {
  const mode_t before = ::umask(S_IWGRP | S_IWOTH);
  ::umask(before | S_IWGRP | S_IWOTH);
}

fs::path HomeFolder() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return home;
  std::string buffer(kPasswordBytes, '\0');
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return {};
  return entry.pw_dir != nullptr && entry.pw_dir[0] == '/' ? fs::path(entry.pw_dir) : fs::path();
}

fs::path UserFolder(const char* variable, const char* below_home) {
  const char* set = std::getenv(variable);
  if (set != nullptr && set[0] == '/') return fs::path(set) / "evald";
  const fs::path home = HomeFolder();
  return home.empty() ? fs::path() : home / below_home / "evald";
}

fs::path ExpandHome(const std::string& text) {
  if (!text.starts_with("~/")) return text;
  const fs::path home = HomeFolder();
  if (home.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: this user (uid {}) has no home folder", text, ::geteuid()),
                "set HOME, or write the path from the root on");
  }
  return home / text.substr(2);
}

}  // namespace evald
