#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace evald {

/// Owns a file descriptor; closes it when destroyed.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Throws Error(kInfrastructure) that names the path, the operation and errno's text.
[[noreturn]] void ThrowErrno(const std::filesystem::path& path, std::string_view what,
                             int error_number);

/// The whole file. Throws Error(kInput) if it is missing or unreadable.
std::string ReadFile(const std::filesystem::path& path);
/// The same for an open file, from its current position; `path` names it in errors. Also throws
/// Error(kInput) for a file of more than `bytes_max`, and never reads more than that.
std::string ReadFile(const UniqueFd& fd, const std::filesystem::path& path,
                     uint64_t bytes_max = UINT64_MAX);

/// Writes all `bytes` at `offset` of an open file; `path` names it in errors. Throws
/// Error(kInfrastructure).
void WriteAt(int fd, std::string_view bytes, uint64_t offset, const std::filesystem::path& path);

/// Writes `content` so that `path` holds either the old or the whole new content, even after power
/// loss: another name, fsync, rename, fsync of the folder.
void WriteFileAtomic(const std::filesystem::path& path, std::string_view content);

/// The same for a file that a person names. A device, a pipe or a terminal is written to and not
/// replaced. For a symbolic link, the file that it leads to is replaced, unless the link is another
/// user's: Error(kUsage).
void WriteOutput(const std::filesystem::path& path, std::string_view content);

void FsyncDirectory(const std::filesystem::path& directory);

/// Creates `directory` and its parents, so that they survive power loss. Throws Error naming
/// `directory`: kInfrastructure for a full or failing disk, otherwise kUsage.
void MakeDirectories(const std::filesystem::path& directory);

/// Makes one folder with the rights `mode` that the umask leaves, whatever default ACL the folder
/// above has (acl(5)): where there is one, the kernel ignores the umask, and users that the ACL
/// names could exchange what is in the folder. The new folder has no default ACL. Returns 0, or the
/// errno of what failed: EEXIST if something of that name exists.
int MakeFolder(const std::filesystem::path& folder, mode_t mode = 0777);

/// A file that is written as `<path>.part` and becomes `path` on Commit(). If it is destroyed
/// uncommitted it stays as `.part`, so that its whole lines can be resumed; Discard() removes it.
/// One thread at a time.
class PendingFile {
 public:
  explicit PendingFile(std::filesystem::path path);

  /// Appends; buffered up to 64 KiB. Throws Error(kInfrastructure) for a full disk or an I/O error.
  void Append(std::string_view bytes);
  /// Hands the buffer to the kernel, so that a crash of this process loses nothing appended before.
  void Flush();
  /// Flush, fsync, rename to the final name, fsync of the folder.
  void Commit();
  void Discard();

  uint64_t bytes() const { return bytes_; }
  /// XXH3-128 of all appended bytes.
  std::string HashHex() const { return hasher_.Hex(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::filesystem::path part_;
  UniqueFd fd_;
  std::string buffer_;
  uint64_t bytes_ = 0;
  Hasher hasher_;
};

/// A read-only memory mapping of a whole file. Unmapped when destroyed.
class MappedFile {
 public:
  /// Throws Error(kInput) if the file cannot be opened. An empty file maps to an empty view.
  explicit MappedFile(const std::filesystem::path& path);
  /// Maps an open file; `path` names it in errors.
  MappedFile(const UniqueFd& fd, const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const char* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  uint64_t size_ = 0;
};

/// Throws Error(kInfrastructure) if the file's XXH3-128 is not the one that it was committed with.
void CheckHash(const std::filesystem::path& file, const std::string& hash);

}  // namespace evald
