#include "base/own_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
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

// This user's entry in the password database.
struct Account {
  std::string name;
  fs::path home;
  gid_t group = 0;
};

std::optional<Account> OwnAccount() {
  std::string buffer(kPasswordBytes, '\0');
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return Account{entry.pw_name, entry.pw_dir == nullptr ? "" : entry.pw_dir, entry.pw_gid};
}

// Whether the group is this user's alone, as many systems give each user one, or root's.
bool IsOwnGroup(gid_t group) {
  if (group == 0) return true;
  const std::optional<Account> account = OwnAccount();
  if (!account || account->group != group) return false;
  std::string buffer(kPasswordBytes, '\0');
  struct group entry{};
  struct group* found = nullptr;
  if (::getgrgid_r(group, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return false;
  }
  for (char** member = entry.gr_mem; *member != nullptr; ++member) {
    if (account->name != *member) return false;
  }
  return account->name == entry.gr_name;
}

// Whether the user is this one or root. In a user namespace without root, root's folders show as
// those of the overflow user.
bool IsTrusted(uid_t user) {
  if (user == 0 || user == ::geteuid()) return true;
  constexpr uid_t kOverflow = 65534;
  if (user != kOverflow) return false;
  uint64_t inside = 0, outside = 0, count = 0;
  std::ifstream("/proc/self/uid_map") >> inside >> outside >> count;
  return outside != 0 || count <= kOverflow;
}

// Who may write to the folder, except for its owner, in words; "" if nobody else may whom this user
// does not trust. An access control list (acl(5)) counts.
std::string OthersWhoMayWrite(const fs::path& folder, const struct stat& info) {
  if ((info.st_mode & S_IWOTH) != 0) return "every user";
  if ((info.st_mode & S_IWGRP) == 0) return "";  // with a list, this bit is the list's mask
  struct Entry {
    uint16_t tag, permissions;
    uint32_t id;
  };
  constexpr uint16_t kUser = 2, kOwnGroup = 4, kGroup = 8, kWrite = 2;
  std::string list(kPasswordBytes, '\0');
  const ssize_t size =
      ::getxattr(folder.c_str(), "system.posix_acl_access", list.data(), list.size());
  if (size <= 0) {
    return IsOwnGroup(info.st_gid) ? "" : fmt::format("group {}", info.st_gid);
  }
  for (size_t at = sizeof(uint32_t); at + sizeof(Entry) <= static_cast<size_t>(size);
       at += sizeof(Entry)) {
    Entry entry{};
    std::memcpy(&entry, list.data() + at, sizeof entry);
    if ((entry.permissions & kWrite) == 0) continue;
    if (entry.tag == kUser && !IsTrusted(entry.id)) return fmt::format("user {}", entry.id);
    if (entry.tag == kGroup && !IsOwnGroup(entry.id)) return fmt::format("group {}", entry.id);
    if (entry.tag == kOwnGroup && !IsOwnGroup(info.st_gid))
      return fmt::format("group {}", info.st_gid);
  }
  return "";
}

// Whether this user's home folder lies below: who may exchange that can do anything as this user.
bool IsAboveHome(const fs::path& folder) {
  const std::optional<Account> account = OwnAccount();
  if (!account || !account->home.is_absolute() || account->home == folder) return false;
  const auto [end, unused] =
      std::mismatch(folder.begin(), folder.end(), account->home.begin(), account->home.end());
  return end == folder.end();
}

[[noreturn]] void RefuseOwner(const fs::path& folder, const fs::path& at, uid_t owner,
                              std::string_view remedy) {
  Refuse(folder,
         fmt::format("lies below {}, which belongs to user {}; expected {} or root", at.string(),
                     owner, ::geteuid()),
         remedy);
}

// Checks a folder on the way to `folder`: `at`, which is no link.
void CheckFolderAbove(const fs::path& folder, const fs::path& at, const struct stat& info,
                      bool* others_make_folders, std::string_view remedy) {
  const bool trusted = IsTrusted(info.st_uid) || (!*others_make_folders && IsAboveHome(at));
  if (!trusted) RefuseOwner(folder, at, info.st_uid, remedy);
  const std::string others = OthersWhoMayWrite(at, info);
  *others_make_folders = !others.empty();
  if (others.empty() || (info.st_mode & S_ISVTX) != 0) return;
  if ((info.st_mode & S_IWOTH) == 0 && IsAboveHome(at)) return;
  Refuse(folder,
         fmt::format("lies below {}, where {} may rename it ({} without the sticky bit)",
                     at.string(), others, Mode(info)),
         remedy);
}

// Checks all folders and links on the way to `folder`, in the order in which the kernel follows
// them. A user who may write to one of the folders, or owns a link in a folder where all make
// files, could exchange `folder` later.
void CheckWay(const fs::path& folder, std::string_view remedy) {
  constexpr int kLinksMax = 40;  // the kernel's
  const fs::path way = folder.parent_path();
  std::deque<fs::path> left(way.begin(), way.end());
  bool others_make_folders = false;  // in the folder before this one
  int links = 0;
  fs::path at;
  while (!left.empty()) {
    const fs::path part = left.front();
    left.pop_front();
    if (part.empty() || part == ".") continue;
    const fs::path before = at;
    at = part == ".." ? at.parent_path() : at / part;  // an absolute part begins anew
    struct stat info{};
    if (::lstat(at.c_str(), &info) != 0)
      Refuse(folder, fmt::format("{}: {}", at.string(), std::strerror(errno)), remedy);
    if (!S_ISLNK(info.st_mode)) {
      CheckFolderAbove(folder, at, info, &others_make_folders, remedy);
      continue;
    }
    if (others_make_folders && !IsTrusted(info.st_uid))
      RefuseOwner(folder, at, info.st_uid, remedy);
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error || ++links > kLinksMax)
      Refuse(folder, fmt::format("{}: cannot be followed", at.string()), remedy);
    left.insert(left.begin(), target.begin(), target.end());
    at = before;
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
  CheckWay(folder, remedy);
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
  const std::optional<Account> account = OwnAccount();
  return account && account->home.is_absolute() ? account->home : fs::path();
}

fs::path TmpFolder() {
  const char* set = std::getenv("TMPDIR");
  const fs::path folder = set == nullptr || *set == '\0' ? "/tmp" : set;
  std::error_code error;
  if (fs::is_directory(folder, error)) return fs::absolute(folder);
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: expected the folder for temporary files, found {}", folder.string(),
                          error ? error.message() : "no folder"),
              "set TMPDIR to a folder");
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
