#include "fetch/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::fetch {
namespace fs = std::filesystem;
namespace {

constexpr mode_t kReadableByAll = 0644;

PartOrigin ReadOrigin(const fs::path& path) {
  const std::string where = path.string();
  const Json about = ParseJson(ReadFile(path), where);
  PartOrigin origin{Field<std::string>(about, "url", where),
                    FieldOr<std::string>(about, "etag", "", where), std::nullopt};
  if (about.contains("bytes")) origin.bytes = Field<uint64_t>(about, "bytes", where);
  return origin;
}

}  // namespace

PartFile::PartFile(fs::path target)
    : target_(std::move(target)),
      part_(target_.string() + ".part"),
      about_(part_.string() + ".json") {
  MakeDirectories(target_.parent_path());
  fd_.reset(::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kReadableByAll));
  if (!fd_) ThrowErrno(part_, "open", errno);
  struct stat about{};
  if (::fstat(fd_.get(), &about) != 0) ThrowErrno(part_, "fstat", errno);
  bytes_ = static_cast<uint64_t>(about.st_size);
  if (bytes_ == 0) return;
  try {
    origin_ = ReadOrigin(about_);
  } catch (const Error&) {
    Clear();
  }
}

void PartFile::Begin(PartOrigin origin) {
  Clear();
  origin_ = std::move(origin);
  Json about = {{"url", origin_.url}, {"etag", origin_.etag}};
  if (origin_.bytes) about["bytes"] = *origin_.bytes;
  WriteFileAtomic(about_, ToLine(about) + "\n");
}

void PartFile::Clear() {
  if (::ftruncate(fd_.get(), 0) != 0) ThrowErrno(part_, "ftruncate", errno);
  bytes_ = 0;
  origin_ = {};
}

void PartFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote =
        ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(bytes_));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ThrowErrno(part_, "write", errno);
    bytes.remove_prefix(static_cast<size_t>(wrote));
    bytes_ += static_cast<uint64_t>(wrote);
  }
}

void PartFile::Commit() {
  if (::fsync(fd_.get()) != 0) ThrowErrno(part_, "fsync", errno);
  if (::rename(part_.c_str(), target_.c_str()) != 0) ThrowErrno(target_, "rename", errno);
  ::unlink(about_.c_str());
  FsyncDirectory(target_.parent_path());
}

}  // namespace evald::fetch
