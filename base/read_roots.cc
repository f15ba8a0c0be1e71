#include "base/read_roots.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace read_roots {

using Parts = std::vector<std::string>;

// A root, by the two names with which paths may begin.
struct Root {
  fs::path path;
  Parts written;
  Parts real;
};

struct Roots {
  std::vector<Root> list;
};

// A folder's identity, independent of its name.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const Identity&) const = default;
};

// An open folder, and the folders on the walk to it, from its root to itself: ".." may go back to
// these only. They are kept by identity and not held open, so a path of many parts takes one
// descriptor.
struct Place {
  const Root* root = nullptr;
  std::shared_ptr<const UniqueFd> folder;
  std::vector<Identity> trail;
  int fd() const { return folder->get(); }
};

}  // namespace read_roots

namespace {

using read_roots::Identity;
using read_roots::Parts;
using read_roots::Place;
using read_roots::Root;
using read_roots::Roots;

constexpr int kLinksMax = 40;
constexpr int kStepsMax = 256;
constexpr size_t kShownBytesMax = 300;
// The file systems in which the kernel shows processes and itself (linux/magic.h): proc, sysfs,
// debugfs, tracefs, securityfs, cgroup, cgroup2, bpf, configfs, selinuxfs, smackfs, pstore,
// efivarfs, devpts, binfmt_misc.
constexpr std::array<uint32_t, 15> kKernels = {
    0x9fa0,     0x62656572, 0x64626720, 0x74726163, 0x73636673, 0x27e0eb, 0x63677270, 0xcafe4a11,
    0x62656570, 0xf97cff8c, 0x43415d53, 0x6165676c, 0xde5e81e4, 0x1cd1,   0x42494e4d};
constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::shared_ptr<const UniqueFd> Shared(int fd) { return std::make_shared<const UniqueFd>(fd); }

Parts PartsOf(const std::string& path) {
  Parts parts;
  for (std::string& part : Split(path, '/')) {
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  return parts;
}

// The end of a walk: a folder (`name` is empty) or a file in it.
struct Arrival {
  Place place;
  std::string name;
};

class Walk {
 public:
  explicit Walk(const Roots& roots) : roots_(roots) {}

  std::optional<Arrival> From(Place place, const std::string& path) {
    place_ = std::move(place);
    if (path.starts_with('/') ? !Restart(path) : !Push(path)) return std::nullopt;
    return Go();
  }

  // Whether the walk ended on the way along a link.
  bool in_link() const { return own_parts_ != kNoLink; }

 private:
  static constexpr size_t kNoLink = SIZE_MAX;

  std::optional<Arrival> Go() {
    while (!open_.empty()) {
      const std::string part = std::move(open_.back());
      open_.pop_back();
      if (in_link() && open_.size() < own_parts_) own_parts_ = kNoLink;
      if (++steps_ > kStepsMax) {
        errno = ELOOP;
        return std::nullopt;
      }
      if (part == "..") {
        if (!Up()) return std::nullopt;
        continue;
      }
      auto fd = Shared(::openat(place_.fd(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      struct stat info{};
      if (!*fd || ::fstat(fd->get(), &info) != 0) return std::nullopt;
      if (S_ISLNK(info.st_mode)) {
        if (!FollowLink(fd->get())) return std::nullopt;
      } else if (S_ISDIR(info.st_mode)) {
        place_.folder = std::move(fd);
        place_.trail.push_back({info.st_dev, info.st_ino});
      } else if (S_ISREG(info.st_mode) && open_.empty()) {
        return Arrival{std::move(place_), part};
      } else {
        return std::nullopt;
      }
    }
    return Arrival{std::move(place_), ""};
  }

  bool FollowLink(int link) {
    if (!in_link()) own_parts_ = open_.size();
    char target[PATH_MAX];
    const ssize_t bytes = ::readlinkat(link, "", target, sizeof target);
    if (bytes <= 0 || bytes == sizeof target) return false;
    const std::string text(target, static_cast<size_t>(bytes));
    return text[0] == '/' ? Restart(text) : Push(text);
  }

  // Puts the parts of `path` before those still to be followed.
  bool Push(const std::string& path) {
    Parts parts = PartsOf(path);
    open_.insert(open_.end(), parts.rbegin(), parts.rend());
    errno = open_.size() > kStepsMax ? ELOOP : ENOENT;
    return ++jumps_ <= kLinksMax && open_.size() <= kStepsMax;
  }

  // Goes up. A folder that was moved meanwhile has another parent, which may lie outside.
  bool Up() {
    if (place_.trail.size() > 1) {
      auto fd = Shared(::openat(place_.fd(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
      struct stat info{};
      if (!*fd || ::fstat(fd->get(), &info) != 0) return false;
      place_.trail.pop_back();
      place_.folder = std::move(fd);
      return place_.trail.back() == Identity{info.st_dev, info.st_ino};
    }
    const Root* root = place_.root;
    return !root->real.empty() &&
           Restart("/" + Join(Parts(root->real.begin(), root->real.end() - 1), "/"));
  }

  // Goes on from the root with which `path` and the remaining parts begin.
  bool Restart(const std::string& path) {
    if (!Push(path)) return false;
    Parts begin;
    while (true) {
      for (const Root& root : roots_.list) {
        if (begin == root.written || begin == root.real) return Enter(root);
      }
      if (open_.empty()) return false;
      const std::string part = std::move(open_.back());
      open_.pop_back();
      if (part != "..") {
        begin.push_back(part);
      } else if (!begin.empty()) {
        begin.pop_back();
      }
    }
  }

  bool Enter(const Root& root) {
    auto fd = Shared(::open(root.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat info{};
    if (!*fd || ::fstat(fd->get(), &info) != 0) return false;
    place_ = {&root, std::move(fd), {{info.st_dev, info.st_ino}}};
    return true;
  }

  const Roots& roots_;
  Place place_;
  Parts open_;  // parts still to be followed, the next one last
  // While the parts of a link are followed: how many parts of the path itself come after them
  size_t own_parts_ = kNoLink;
  int jumps_ = 0;
  int steps_ = 0;
};

// `lost_link`, if given: whether a link on the way leads nowhere, or outside of the roots.
std::optional<Arrival> Arrive(const Roots& roots, const Place& from, const std::string& path,
                              bool* lost_link = nullptr) {
  errno = path.size() >= PATH_MAX ? ENAMETOOLONG : ENOENT;
  if (path.find('\0') != std::string::npos || path.size() >= PATH_MAX) return std::nullopt;
  Walk walk(roots);
  std::optional<Arrival> arrival = walk.From(from, path);
  if (lost_link != nullptr) *lost_link = !arrival && walk.in_link();
  return arrival;
}

std::optional<Arrival> Arrive(const Roots& roots, const fs::path& path, bool* lost_link = nullptr) {
  if (path.is_absolute()) return Arrive(roots, {}, path.string(), lost_link);
  errno = ENOENT;
  return std::nullopt;
}

// A file may be left out. A link to one that this service may not read is another matter: what is
// read without the file is not what its owner meant.
void RefuseLostLink(bool lost_link, const fs::path& path) {
  if (!lost_link) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: a link on its way leads nowhere, or outside the folders that may be "
                          "read",
                          PrintableLine(Shortened(path.string(), kShownBytesMax))),
              "put the file itself there, or remove the link");
}

// The folder that a walk led to; null, with the reason, if it led to none.
std::shared_ptr<const Place> FolderOf(std::optional<Arrival> arrival, int* failure) {
  *failure = 0;
  if (arrival && arrival->name.empty())
    return std::make_shared<const Place>(std::move(arrival->place));
  *failure = !arrival && errno != 0 ? errno : ENOENT;
  return nullptr;
}

// Whether the kernel shows itself or processes there: their environments hold keys, and nothing
// there is data. It asks about the open descriptor, so no link and no mount can hide it behind
// another name.
bool IsKernels(int fd) {
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0) return true;
  return std::find(kKernels.begin(), kKernels.end(), static_cast<uint32_t>(system.f_type)) !=
         kKernels.end();
}

// Returns the descriptor if it is a regular file's. Otherwise none, with the reason in errno.
UniqueFd IfRegular(UniqueFd fd) {
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return {};
  if (IsKernels(fd.get())) {
    errno = EOPNOTSUPP;
    return {};
  }
  if (S_ISREG(info.st_mode)) return fd;
  errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
  return {};
}

// Checks before it opens: opening a pipe or a device can act.
UniqueFd OpenRegular(int folder, const std::string& name, int flags) {
  struct stat info{};
  if (::fstatat(folder, name.c_str(), &info, (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0) !=
      0)
    return {};
  if (!S_ISREG(info.st_mode)) {
    errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    return {};
  }
  return IfRegular(UniqueFd(::openat(folder, name.c_str(), flags)));
}

UniqueFd OpenArrival(const std::optional<Arrival>& arrival) {
  if (!arrival || arrival->name.empty()) return {};
  return OpenRegular(arrival->place.fd(), arrival->name, kFileFlags | O_NOFOLLOW);
}

// The metadata of a file or folder that may be read. Links are followed unless `flags` forbid it.
bool StatReadable(int folder, const std::string& name, int flags, struct stat* info) {
  const UniqueFd fd(::openat(folder, name.c_str(), O_PATH | O_CLOEXEC | flags));
  if (!fd || ::fstat(fd.get(), info) != 0) return false;
  return !(S_ISREG(info->st_mode) || S_ISDIR(info->st_mode)) || !IsKernels(fd.get());
}

bool StatArrival(const std::optional<Arrival>& arrival, struct stat* info) {
  if (!arrival) return false;
  if (arrival->name.empty()) return ::fstat(arrival->place.fd(), info) == 0;
  return StatReadable(arrival->place.fd(), arrival->name, O_NOFOLLOW, info);
}

std::vector<std::string> ListFolder(int folder, const fs::path& path, size_t count_max) {
  UniqueFd fd(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* entries = fd ? ::fdopendir(fd.get()) : nullptr;
  if (entries == nullptr) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", path.string(), std::strerror(errno)),
                "check its permissions");
  }
  fd.release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    if (names.size() > count_max) break;
  }
  ::closedir(entries);
  if (names.size() > count_max) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: holds more than {} files", path.string(), count_max));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

ReadRoots::ReadRoots(const std::vector<fs::path>& folders) {
  if (folders.empty()) return;
  auto roots = std::make_shared<Roots>();
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    roots->list.push_back({folder, PartsOf(folder.lexically_normal().string()),
                           PartsOf(fs::weakly_canonical(folder, ignored).string())});
  }
  roots_ = std::move(roots);
}

std::vector<fs::path> ReadRoots::folders() const {
  std::vector<fs::path> folders;
  if (roots_ == nullptr) return folders;
  for (const Root& root : roots_->list) folders.push_back(root.path);
  return folders;
}

bool ReadRoots::HasFile(const fs::path& path) const {
  struct stat info{};
  if (anywhere()) {
    return StatReadable(AT_FDCWD, path.string(), 0, &info) && S_ISREG(info.st_mode);
  }
  bool lost_link = false;
  const auto arrival = Arrive(*roots_, path, &lost_link);
  RefuseLostLink(lost_link, path);
  return StatArrival(arrival, &info) && S_ISREG(info.st_mode);
}

bool ReadRoots::HasFolder(const fs::path& path) const {
  if (anywhere()) return ReadFolder(path, *this).exists();
  bool lost_link = false;
  const auto arrival = Arrive(*roots_, path, &lost_link);
  RefuseLostLink(lost_link, path);
  return arrival && arrival->name.empty();
}

UniqueFd ReadRoots::OpenFile(const fs::path& path) const {
  UniqueFd fd = anywhere() ? OpenRegular(AT_FDCWD, path.string(), kFileFlags)
                           : OpenArrival(Arrive(*roots_, path));
  if (!fd) Refuse(path, errno);
  return fd;
}

std::string ReadRoots::Read(const fs::path& path, uint64_t bytes_max) const {
  return ReadFile(OpenFile(path), path, bytes_max);
}

void ReadRoots::Refuse(const fs::path& path, int failure) const {
  std::string shown = path.string();
  if (shown.size() > kShownBytesMax) shown = Printable(shown.substr(0, kShownBytesMax)) + "...";
  const auto refusal = [&](const std::string& why, const std::string& remedy) {
    return Error(ErrorKind::kInput, shown + ": " + why, remedy);
  };
  if (failure == ENAMETOOLONG) {
    throw refusal(fmt::format("is too long: a path has at most {} bytes, each of its parts {}",
                              PATH_MAX - 1, NAME_MAX),
                  "give a shorter path");
  }
  if (failure == EOPNOTSUPP) {
    throw refusal(
        "lies in a file system in which the kernel shows processes or itself, such as /proc and "
        "/sys",
        "name a file or folder that holds data");
  }
  if (!anywhere() && failure == ELOOP) {
    throw refusal(
        fmt::format("has more than {} parts, those of links on its way included", kStepsMax),
        "give a shorter path");
  }
  if (!anywhere()) throw refusal(kNotThere, "the service's configuration lists them under 'roots'");
  if (failure == EINVAL) throw refusal("is neither a regular file nor a folder", "");
  throw refusal(std::strerror(failure), failure == ENOENT   ? "check the path"
                                        : failure == EACCES ? "check the permissions"
                                                            : "");
}

ReadFolder::ReadFolder(fs::path path, const ReadRoots& roots)
    : path_(std::move(path)), roots_(roots) {
  if (roots.anywhere()) {
    place_ = OpenAnywhere(AT_FDCWD, path_.empty() ? "." : path_.string(), &failure_);
    return;
  }
  place_ = FolderOf(Arrive(*roots.roots_, path_), &failure_);
}

std::shared_ptr<const Place> ReadFolder::OpenAnywhere(int folder, const std::string& name,
                                                      int* failure) {
  auto fd = Shared(::openat(folder, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  *failure = !*fd ? errno : IsKernels(fd->get()) ? EOPNOTSUPP : 0;
  return *failure == 0 ? std::make_shared<const Place>(Place{nullptr, std::move(fd), {}}) : nullptr;
}

ReadFolder ReadFolder::Folder(const std::string& name) const {
  ReadFolder inner;
  inner.path_ = path_ / name;
  inner.roots_ = roots_;
  inner.failure_ = failure_;
  if (!exists()) return inner;
  if (roots_.anywhere()) {
    inner.place_ = OpenAnywhere(place_->fd(), name, &inner.failure_);
    return inner;
  }
  inner.place_ = FolderOf(Arrive(*roots_.roots_, *place_, name), &inner.failure_);
  return inner;
}

bool ReadFolder::IsLink(const std::string& name) const {
  struct stat info{};
  return exists() && ::fstatat(place_->fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(info.st_mode);
}

bool ReadFolder::HasFile(const std::string& name) const {
  struct stat info{};
  return LooksAt(name, &info) && S_ISREG(info.st_mode);
}

bool ReadFolder::HasFolder(const std::string& name) const {
  struct stat info{};
  return LooksAt(name, &info) && S_ISDIR(info.st_mode);
}

// Stat that refuses a link that is not followed.
bool ReadFolder::LooksAt(const std::string& name, struct stat* info) const {
  if (!exists() || roots_.anywhere()) return Stat(name, info);
  bool lost_link = false;
  const auto arrival = Arrive(*roots_.roots_, *place_, name, &lost_link);
  RefuseLostLink(lost_link, path_ / name);
  return StatArrival(arrival, info);
}

bool ReadFolder::Stat(const std::string& name, struct stat* info) const {
  if (!exists()) return false;
  return roots_.anywhere() ? StatReadable(place_->fd(), name, 0, info)
                           : StatArrival(Arrive(*roots_.roots_, *place_, name), info);
}

UniqueFd ReadFolder::OpenFile(const std::string& name) const {
  if (!exists()) roots_.Refuse(path_ / name, failure_);
  UniqueFd fd = roots_.anywhere() ? OpenRegular(place_->fd(), name, kFileFlags)
                                  : OpenArrival(Arrive(*roots_.roots_, *place_, name));
  if (!fd) roots_.Refuse(path_ / name, errno);
  return fd;
}

std::string ReadFolder::Read(const std::string& name, uint64_t bytes_max) const {
  return ReadFile(OpenFile(name), path_ / name, bytes_max);
}

std::vector<std::string> ReadFolder::Names(const std::string& name, size_t count_max) const {
  const ReadFolder folder = name == "." ? *this : Folder(name);
  if (!folder.exists()) roots_.Refuse(folder.path_, folder.failure_);
  return ListFolder(folder.place_->fd(), folder.path_, count_max);
}

}  // namespace evald
