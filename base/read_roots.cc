#include "base/read_roots.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

// A root by the names that paths may begin with.
struct Root {
  fs::path path;
  Parts written;
  Parts real;
};

struct Roots {
  std::vector<Root> list;
};

// An open folder, and the open folders around it up to its root: ".." goes back to these.
struct Place {
  const Root* root = nullptr;
  std::vector<std::shared_ptr<const UniqueFd>> steps;
  int fd() const { return steps.back()->get(); }
};

}  // namespace read_roots

namespace {

using read_roots::Parts;
using read_roots::Place;
using read_roots::Root;
using read_roots::Roots;

constexpr int kLinksMax = 40;
constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::shared_ptr<const UniqueFd> Shared(int fd) { return std::make_shared<const UniqueFd>(fd); }

Parts PartsOf(const std::string& path) {
  Parts parts;
  for (std::string& part : Split(path, '/')) {
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  return parts;
}

// What a walk arrived at: a folder (`name` is empty) or a file of it.
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

 private:
  std::optional<Arrival> Go() {
    while (!open_.empty()) {
      const std::string part = std::move(open_.back());
      open_.pop_back();
      if (part == "..") {
        if (!Up()) return std::nullopt;
        continue;
      }
      auto fd = Shared(::openat(place_.fd(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      struct stat info {};
      if (!*fd || ::fstat(fd->get(), &info) != 0) return std::nullopt;
      if (S_ISLNK(info.st_mode)) {
        if (!FollowLink(fd->get())) return std::nullopt;
      } else if (S_ISDIR(info.st_mode)) {
        place_.steps.push_back(std::move(fd));
      } else if (S_ISREG(info.st_mode) && open_.empty()) {
        return Arrival{std::move(place_), part};
      } else {
        return std::nullopt;
      }
    }
    return Arrival{std::move(place_), ""};
  }

  bool FollowLink(int link) {
    char target[PATH_MAX];
    const ssize_t bytes = ::readlinkat(link, "", target, sizeof target);
    if (bytes <= 0 || bytes == sizeof target) return false;
    const std::string text(target, static_cast<size_t>(bytes));
    return text[0] == '/' ? Restart(text) : Push(text);
  }

  // Puts the parts of `path` before those that are still to be followed.
  bool Push(const std::string& path) {
    Parts parts = PartsOf(path);
    open_.insert(open_.end(), parts.rbegin(), parts.rend());
    return ++jumps_ <= kLinksMax;
  }

  bool Up() {
    if (place_.steps.size() > 1) {
      place_.steps.pop_back();
      return true;
    }
    const Root* root = place_.root;
    return !root->real.empty() && Restart("/" + Join(Parts(root->real.begin(), root->real.end() - 1), "/"));
  }

  // Goes on from the root that `path` and what is still to be followed begin with.
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
    if (!*fd) return false;
    place_ = {&root, {std::move(fd)}};
    return true;
  }

  const Roots& roots_;
  Place place_;
  Parts open_;  // still to be followed, the next one last
  int jumps_ = 0;
};

std::optional<Arrival> Arrive(const Roots& roots, const Place& from, const std::string& path) {
  if (path.find('\0') != std::string::npos) return std::nullopt;
  return Walk(roots).From(from, path);
}

std::optional<Arrival> Arrive(const Roots& roots, const fs::path& path) {
  return path.is_absolute() ? Arrive(roots, {}, path.string()) : std::nullopt;
}

// The descriptor where it is a regular file's; else none, and errno says why.
UniqueFd IfRegular(UniqueFd fd) {
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return {};
  if (S_ISREG(info.st_mode)) return fd;
  errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
  return {};
}

// Looks before it opens: opening a pipe or a device can act.
UniqueFd OpenRegular(int folder, const std::string& name, int flags) {
  struct stat info {};
  if (::fstatat(folder, name.c_str(), &info, (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0) != 0) return {};
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

bool StatArrival(const std::optional<Arrival>& arrival, struct stat* info) {
  if (!arrival) return false;
  if (arrival->name.empty()) return ::fstat(arrival->place.fd(), info) == 0;
  return ::fstatat(arrival->place.fd(), arrival->name.c_str(), info, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> ListFolder(int folder, const fs::path& path, size_t count_max) {
  UniqueFd fd(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* entries = fd ? ::fdopendir(fd.get()) : nullptr;
  if (entries == nullptr) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", path.string(), std::strerror(errno)), "check its permissions");
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
    throw Error(ErrorKind::kInput, fmt::format("{}: holds more than {} files", path.string(), count_max));
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
  struct stat info {};
  const bool known = anywhere() ? ::stat(path.c_str(), &info) == 0 : StatArrival(Arrive(*roots_, path), &info);
  return known && S_ISREG(info.st_mode);
}

bool ReadRoots::HasFolder(const fs::path& path) const { return ReadFolder(path, *this).exists(); }

UniqueFd ReadRoots::OpenFile(const fs::path& path) const {
  UniqueFd fd = anywhere() ? OpenRegular(AT_FDCWD, path.string(), kFileFlags) : OpenArrival(Arrive(*roots_, path));
  if (!fd) Refuse(path, errno);
  return fd;
}

std::string ReadRoots::Read(const fs::path& path, uint64_t bytes_max) const {
  return ReadFile(OpenFile(path), path, bytes_max);
}

void ReadRoots::Refuse(const fs::path& path, int failure) const {
  if (!anywhere()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {}", path.string(), kNotThere),
                "the service's configuration lists them under 'roots'");
  }
  throw Error(ErrorKind::kInput,
              failure == EINVAL ? path.string() + ": is neither a regular file nor a folder"
                                : fmt::format("{}: {}", path.string(), std::strerror(failure)),
              failure == ENOENT ? "check the path" : failure == EACCES ? "check the permissions" : "");
}

ReadFolder::ReadFolder(fs::path path, const ReadRoots& roots) : path_(std::move(path)), roots_(roots) {
  if (roots.anywhere()) {
    place_ = OpenAnywhere(AT_FDCWD, path_.empty() ? "." : path_.string(), &failure_);
    return;
  }
  std::optional<Arrival> arrival = Arrive(*roots.roots_, path_);
  failure_ = arrival && arrival->name.empty() ? 0 : ENOENT;
  if (failure_ == 0) place_ = std::make_shared<const Place>(std::move(arrival->place));
}

std::shared_ptr<const Place> ReadFolder::OpenAnywhere(int folder, const std::string& name, int* failure) {
  auto fd = Shared(::openat(folder, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  *failure = *fd ? 0 : errno;
  return *fd ? std::make_shared<const Place>(Place{nullptr, {std::move(fd)}}) : nullptr;
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
  std::optional<Arrival> arrival = Arrive(*roots_.roots_, *place_, name);
  inner.failure_ = arrival && arrival->name.empty() ? 0 : ENOENT;
  if (inner.failure_ == 0) inner.place_ = std::make_shared<const Place>(std::move(arrival->place));
  return inner;
}

bool ReadFolder::IsLink(const std::string& name) const {
  struct stat info {};
  return exists() && ::fstatat(place_->fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
}

bool ReadFolder::HasFile(const std::string& name) const {
  struct stat info {};
  return Stat(name, &info) && S_ISREG(info.st_mode);
}

bool ReadFolder::HasFolder(const std::string& name) const {
  struct stat info {};
  return Stat(name, &info) && S_ISDIR(info.st_mode);
}

bool ReadFolder::Stat(const std::string& name, struct stat* info) const {
  if (!exists()) return false;
  return roots_.anywhere() ? ::fstatat(place_->fd(), name.c_str(), info, 0) == 0
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
