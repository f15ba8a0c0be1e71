#pragma once
// The content of a disk after a power cut, as far as POSIX promises it: the bytes of a file are
// those of its last fsync, and the names in a folder are those of the folder's last fsync.
// syncing_disk.cc records both at each fsync under the inode. power_cut.cc makes a folder of the
// records.
//
//   <shadow>/data/<inode>    the bytes of a file
//   <shadow>/names/<inode>   the entries of a folder, one a line: "d <inode> <name>" or "f ..."

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <string>

namespace disk {

/// Names an inode over its life. Inode numbers are used again, so the name includes the time of
/// birth. "" if there is no such file. Follows no link.
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
