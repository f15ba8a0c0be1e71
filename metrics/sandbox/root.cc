#include "metrics/sandbox/root.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>

namespace evald::sandbox {
namespace {

namespace fs = std::filesystem;

/// The tmpfs hides it in the sandbox's own mount namespace only. It exists on every host.
constexpr const char* kMountPoint = "/proc";

void AddFolders(const fs::path& path, std::set<std::string>* folders) {
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path()) folders->insert(at);
}

/// Whether another bind already contains `path`.
bool IsCovered(const std::string& path, const std::vector<std::string>& binds) {
  return std::any_of(binds.begin(), binds.end(), [&](const std::string& other) {
    return path.size() > other.size() && path.compare(0, other.size(), other) == 0 &&
           path[other.size()] == '/';
  });
}

/// Adds the dynamic loader, which the kernel opens by the path in the executable; there may be
/// links on the way.
void AddLoader(const std::string& loader, std::set<std::string>* folders, RootPlan* plan) {
  std::error_code failed;
  const fs::path target = fs::canonical(loader, failed);
  const fs::path folder = fs::canonical(fs::path(loader).parent_path(), failed);
  const fs::path path = folder / fs::path(loader).filename();
  if (failed || path == target) return;
  AddFolders(folder, folders);
  plan->links.emplace_back(path, target);
}

int CloneTree(const char* path) {
  return open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

bool WriteGuest(std::string_view library) {
  const int fd = open("evald/guest.so", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);
  if (fd < 0) return false;
  const ssize_t written = write(fd, library.data(), library.size());
  close(fd);
  return written == static_cast<ssize_t>(library.size());
}

/// Mounts the one writable folder.
const char* MountTmp(const RootPlan& plan) {
  char options[128];
  snprintf(options, sizeof(options), "size=%llu,nr_inodes=16384,mode=0700,uid=%u,gid=%u",
           static_cast<unsigned long long>(plan.tmp_bytes), plan.tmp_owner, plan.tmp_owner);
  const unsigned long flags = MS_NOSUID | MS_NODEV | (plan.tmp_executes ? 0 : MS_NOEXEC);
  const bool done = mount("tmpfs", "tmp", "tmpfs", flags, options) == 0;
  return done ? nullptr : "mount(tmpfs on /tmp)";
}

/// Makes the links through which programs reach their own streams.
const char* LinkStreams(const RootPlan& plan) {
  if (!plan.proc) {
    // A program's streams are /dev/null. There is no /proc through which these names could lead
    // elsewhere.
    for (const char* stream : {"dev/stdin", "dev/stdout", "dev/stderr"}) {
      if (symlink("null", stream) != 0) return stream;
    }
    return nullptr;
  }
  constexpr const char* kLinks[][2] = {{"/proc/self/fd", "dev/fd"},
                                       {"/proc/self/fd/0", "dev/stdin"},
                                       {"/proc/self/fd/1", "dev/stdout"},
                                       {"/proc/self/fd/2", "dev/stderr"}};
  for (const auto& [target, link] : kLinks) {
    if (symlink(target, link) != 0) return link;
  }
  if (mkdir("proc", 0755) != 0) return "proc";
  mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "subset=pid");
  return nullptr;
}

/// The files of an interpreter, and time zones, and the locale that every Debian has
/// (`locale.setlocale(locale.LC_ALL, 'C.UTF-8')`).
std::vector<std::string> FilesOf(const Interpreter& interpreter) {
  std::vector<std::string> wanted = {interpreter.executable};
  for (const auto* list : {&interpreter.folders, &interpreter.libraries, &interpreter.packages}) {
    wanted.insert(wanted.end(), list->begin(), list->end());
  }
  for (const char* folder : {"/usr/share/zoneinfo", "/usr/lib/locale/C.utf8"}) {
    if (fs::is_directory(folder)) wanted.emplace_back(folder);
  }
  return wanted;
}

/// A root with these files and folders.
RootPlan RootWith(std::vector<std::string> wanted) {
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());

  RootPlan plan;
  std::set<std::string> folders = {"/tmp", "/dev", "/evald", "/etc"};
  for (const std::string& path : wanted) {
    if (IsCovered(path, wanted) || !fs::exists(path)) continue;
    const bool folder = fs::is_directory(path);
    AddFolders(folder ? fs::path(path) : fs::path(path).parent_path(), &folders);
    plan.binds.push_back({path, folder, false});
  }
  for (const char* device :
       {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
    if (fs::is_character_file(device)) plan.binds.push_back({device, false, true});
  }
  for (const char* link : {"/lib", "/lib32", "/lib64", "/libx32"}) {
    if (fs::is_symlink(link)) plan.links.emplace_back(link, fs::read_symlink(link).string());
  }
  plan.folders.assign(folders.begin(), folders.end());
  return plan;
}

}  // namespace

RootPlan PlanRoot(const Interpreter& interpreter) {
  RootPlan plan = RootWith(FilesOf(interpreter));
  std::set<std::string> folders(plan.folders.begin(), plan.folders.end());
  AddLoader(interpreter.loader, &folders, &plan);
  plan.folders.assign(folders.begin(), folders.end());
  return plan;
}

RootPlan PlanToolRoot(const Interpreter& interpreter) {
  std::vector<std::string> wanted = FilesOf(interpreter);
  for (const char* name :
       {"bin", "include", "lib", "lib32", "lib64", "libexec", "libx32", "sbin", "share"}) {
    const fs::path path = fs::path("/usr") / name;
    if (fs::is_directory(path) && !fs::is_symlink(path)) wanted.push_back(path);
  }
  for (const char* path : {"/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"}) {
    if (fs::is_directory(path) && !fs::is_symlink(path)) wanted.emplace_back(path);
  }
  for (const char* path : {"/etc/alternatives", "/etc/ld.so.cache", "/etc/perl", "/etc/php"}) {
    if (fs::exists(path)) wanted.emplace_back(path);
  }
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator("/etc", unreadable)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("java-") && entry.is_directory()) wanted.push_back(entry.path());
  }
  RootPlan plan = RootWith(std::move(wanted));
  for (const char* link : {"/bin", "/sbin"}) {
    if (fs::is_symlink(link)) plan.links.emplace_back(link, fs::read_symlink(link).string());
  }
  plan.tmp_executes = true;
  plan.proc = true;
  return plan;
}

const char* CopyTrees(RootPlan& plan) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return "mount(/, MS_PRIVATE)";
  for (RootPlan::Bind& bind : plan.binds) {
    bind.tree = CloneTree(bind.path.c_str());
    if (bind.tree < 0) return bind.path.c_str();
    mount_attr attributes = {};
    attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
    attributes.attr_set |= bind.device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV;
    if (mount_setattr(bind.tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                      sizeof(attributes)) != 0) {
      return "mount_setattr(read-only)";
    }
  }
  return nullptr;
}

const char* MountRoot() {
  constexpr const char* kOptions = "size=4m,mode=0755,uid=0,gid=0";
  if (mount("tmpfs", kMountPoint, "tmpfs", MS_NOSUID | MS_NODEV, kOptions) != 0) {
    return "mount(tmpfs for the new root)";
  }
  return chdir(kMountPoint) != 0 ? "chdir(new root)" : nullptr;
}

const char* BuildRoot(RootPlan& plan) {
  for (const std::string& folder : plan.folders) {
    if (mkdir(folder.c_str() + 1, 0755) != 0 && errno != EEXIST) return folder.c_str();
  }
  // The C library keeps semaphores there, which thread pools use.
  if (symlink("/tmp", "dev/shm") != 0) return "/dev/shm";
  if (const char* failed = LinkStreams(plan)) return failed;
  for (const auto& [path, target] : plan.links) {
    if (symlink(target.c_str(), path.c_str() + 1) != 0 && errno != EEXIST) return path.c_str();
  }
  for (RootPlan::Bind& bind : plan.binds) {
    const char* inside = bind.path.c_str() + 1;
    if (!bind.folder) {
      const int file = open(inside, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
      if (file < 0) return inside;
      close(file);
    }
    if (move_mount(bind.tree, "", AT_FDCWD, inside, MOVE_MOUNT_F_EMPTY_PATH) != 0) return inside;
    close(bind.tree);
  }
  if (!plan.guest_library.empty() && !WriteGuest(plan.guest_library)) return kGuestPath;
  return plan.tmp_bytes == 0 ? nullptr : MountTmp(plan);
}

const char* EnterRoot() {
  if (syscall(SYS_pivot_root, ".", ".") != 0) return "pivot_root(.)";
  if (umount2(".", MNT_DETACH) != 0) return "umount2(host's root)";
  if (chdir("/") != 0) return "chdir(/)";
  mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (mount_setattr(AT_FDCWD, "/", 0, &attributes, sizeof(attributes)) != 0) {
    return "mount_setattr(/, read-only)";
  }
  return nullptr;
}

}  // namespace evald::sandbox
