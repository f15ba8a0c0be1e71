#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/fail_point.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
// A file may claim to be longer than it can be
constexpr uint64_t kReserveBytesMax = uint64_t{256} << 20;

void WriteAll(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      ThrowErrno(path, "write", errno);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

const char* RemedyFor(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or write to another file system";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check the permissions";
    case ENOENT:
      return "check the path";
    default:
      return "";
  }
}

}  // namespace

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

void ThrowErrno(const fs::path& path, std::string_view what, int error_number) {
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: {}: {}", path.string(), what, std::strerror(error_number)),
              RemedyFor(error_number));
}

std::string ReadFile(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", path.string(), std::strerror(errno)),
                RemedyFor(errno));
  }
  return ReadFile(fd, path);
}

std::string ReadFile(const UniqueFd& fd, const fs::path& path, uint64_t bytes_max) {
  std::string content;
  struct stat info{};
  if (::fstat(fd.get(), &info) == 0 && info.st_size > 0) {
    const auto bytes = static_cast<uint64_t>(info.st_size);
    if (bytes > bytes_max) {
      throw Error(ErrorKind::kInput, fmt::format("{}: has {}, expected at most {}", path.string(),
                                                 HumanBytes(bytes), HumanBytes(bytes_max)));
    }
    content.reserve(std::min(bytes, kReserveBytesMax));
  }
  char chunk[kBufferBytes];
  while (true) {
    const ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got == 0) return content;
    if (got < 0) {
      if (errno == EINTR) continue;
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: read: {}", path.string(), std::strerror(errno)));
    }
    content.append(chunk, static_cast<size_t>(got));
    if (content.size() > bytes_max) {
      throw Error(ErrorKind::kInput, fmt::format("{}: has more than {}, expected at most that",
                                                 path.string(), HumanBytes(bytes_max)));
    }
  }
}

void WriteAt(int fd, std::string_view bytes, uint64_t offset, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ThrowErrno(path, "write", errno);
    bytes.remove_prefix(static_cast<size_t>(wrote));
    offset += static_cast<uint64_t>(wrote);
  }
}

void WriteFileAtomic(const fs::path& path, std::string_view content) {
  PendingFile file(path);
  try {
    file.Append(content);
    file.Commit();
  } catch (...) {
    file.Discard();
    throw;
  }
}

void WriteOutput(const fs::path& path, std::string_view content) {
  struct stat info{};
  fs::path at;
  for (const fs::path& part : path) {
    at /= part;
    const bool is_link = ::lstat(at.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
    if (!is_link || info.st_uid == ::geteuid() || info.st_uid == 0) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: is a symbolic link of user {}", at.string(), info.st_uid),
                "write to a folder in which only you make files");
  }
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (!there || S_ISREG(info.st_mode)) {
    std::error_code error;
    const fs::path real = there ? fs::canonical(path, error) : path;
    return WriteFileAtomic(there && !error ? real : path, content);
  }
  if (S_ISFIFO(info.st_mode) && info.st_uid != ::geteuid() && info.st_uid != 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: is a pipe of user {}, who may never read from it", path.string(),
                            info.st_uid),
                "write to a folder in which only you make files");
  }
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) ThrowErrno(path, "open", errno);
  WriteAll(fd.get(), content, path);
}

void FsyncDirectory(const fs::path& directory) {
  const fs::path opened = directory.empty() ? fs::path(".") : directory;
  UniqueFd fd(::open(opened.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == EACCES) return;  // writable but not readable: it cannot be fsynced
  if (!fd) ThrowErrno(opened, "open", errno);
  // Some network file systems refuse to fsync a directory. Nothing more can be done there.
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    ThrowErrno(opened, "fsync", errno);
  }
}

namespace {

// umask(2) could only be asked by setting it, for all threads.
mode_t Umask() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    unsigned value = 0;
    if (word == "Umask:" && status >> std::oct >> value) return value;
  }
  return S_IWGRP | S_IWOTH;
}

}  // namespace

int MakeFolder(const fs::path& folder, mode_t mode) {
  // An ACL grants no more than the mode's bits of the group, so nobody but the owner enters yet.
  if (::mkdir(folder.c_str(), 0700) != 0) return errno;
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return errno;
  ::fremovexattr(fd.get(), "system.posix_acl_default");  // mostly there is none
  const mode_t wanted = (info.st_mode & 07000) | (mode & ~Umask());
  if (wanted == (info.st_mode & 07777) || ::fchmod(fd.get(), wanted) == 0) return 0;
  return errno == EPERM ? 0 : errno;  // a file system that has no modes
}

void MakeDirectories(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> made;
  for (fs::path folder = directory; !folder.empty() && !fs::exists(folder, error);
       folder = folder.parent_path()) {
    made.push_back(folder);
  }
  int number = 0;
  for (auto folder = made.rbegin(); number == 0 && folder != made.rend(); ++folder) {
    if (!folder->has_filename()) continue;  // "a/b/" and "a/b" are one folder
    number = MakeFolder(*folder);
    if (number == EEXIST && fs::is_directory(*folder, error)) number = 0;
  }
  if (number != 0 || !fs::is_directory(directory, error)) {
    const bool broken = number == ENOSPC || number == EDQUOT || number == EIO || number == ENOMEM;
    throw Error(broken ? ErrorKind::kInfrastructure : ErrorKind::kUsage,
                fmt::format("{}: cannot create this folder: {}", directory.string(),
                            number != 0 && number != EEXIST ? std::strerror(number)
                                                            : "a file of that name is in the way"),
                broken ? RemedyFor(number) : "choose a folder that you may write to");
  }
  // A power cut must not remove a folder whose content was fsynced.
  for (const fs::path& folder : made) FsyncDirectory(folder.parent_path());
}

PendingFile::PendingFile(fs::path path) : path_(std::move(path)), part_(path_.string() + ".part") {
  // Whoever may write to the folder could have put a link or a pipe there.
  fd_.reset(::open(part_.c_str(),
                   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  if (fd_) return;
  if (errno == ELOOP || errno == ENXIO) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: expected a file or nothing, found a {}", part_.string(),
                            errno == ELOOP ? "symbolic link" : "pipe"),
                "remove it");
  }
  ThrowErrno(part_, "open for writing", errno);
}

void PendingFile::Append(std::string_view bytes) {
  hasher_.Update(bytes);
  bytes_ += bytes.size();
  buffer_.append(bytes);
  if (buffer_.size() >= kBufferBytes) Flush();
}

void PendingFile::Flush() {
  WriteAll(fd_.get(), buffer_, part_);
  buffer_.clear();
}

void PendingFile::Commit() {
  Flush();
  FailPoint("file.written");
  if (::fsync(fd_.get()) != 0) ThrowErrno(part_, "fsync", errno);
  FailPoint("file.synced");
  fd_.reset();
  if (::rename(part_.c_str(), path_.c_str()) != 0) ThrowErrno(path_, "rename", errno);
  FailPoint("file.renamed");
  FsyncDirectory(path_.parent_path());
  FailPoint("file.committed");
}

void PendingFile::Discard() {
  fd_.reset();
  ::unlink(part_.c_str());
}

MappedFile::MappedFile(const fs::path& path)
    : MappedFile(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path) {}

MappedFile::MappedFile(const UniqueFd& fd, const fs::path& path) {
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", path.string(), std::strerror(errno)),
                RemedyFor(errno));
  }
  size_ = static_cast<uint64_t>(info.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    size_ = 0;
    ThrowErrno(path, "mmap", errno);
  }
  data_ = static_cast<const char*>(mapped);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

void CheckHash(const fs::path& file, const std::string& hash) {
  const std::string found = HashHex(MappedFile(file).view());
  if (found == hash) return;
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: changed since it was committed: its hash is {}, expected {}",
                          file.string(), found, hash),
              "resume the run: the file is set aside, and its documents are done again");
}

}  // namespace evald
