#pragma once
// What a disk holds after a power cut, as POSIX promises it and not more: a file's bytes as of its
// last fsync, and a folder's names as of the folder's. syncing_disk.cc records both at each fsync
// under the inode, power_cut.cc makes a folder of them.
//
//   <shadow>/data/<inode>    the bytes of a file
//   <shadow>/names/<inode>   the entries of a folder, "d <inode> <name>" or "f <inode> <name>" a line

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <string>

namespace disk {

/// Names an inode over its life: numbers are used again, so when it was born belongs to it. "" when
/// there is no such file. Follows no link.
inline std::string InodeKey(int at, const char* path, bool* is_folder) {
  struct statx info{};
  const int flags = AT_SYMLINK_NOFOLLOW | (path[0] == '\0' ? AT_EMPTY_PATH : 0);
  if (::statx(at, path, flags, STATX_INO | STATX_BTIME | STATX_TYPE, &info) != 0) return "";
  *is_folder = S_ISDIR(info.stx_mode);
  if (!*is_folder && !S_ISREG(info.stx_mode)) return "";
  char key[64];
  ::snprintf(key, sizeof key, "%llu-%lld.%09u", static_cast<unsigned long long>(info.stx_ino),
             static_cast<long long>(info.stx_btime.tv_sec), info.stx_btime.tv_nsec);
  return key;
}

}  // namespace disk
