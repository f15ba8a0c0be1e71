#include "orchestrator/staging/chunk_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kPageBytes = 4096;

uint64_t WholePages(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes)
    : data_(static_cast<char*>(std::aligned_alloc(kPageBytes, WholePages(bytes)))) {
  if (data_ == nullptr) throw std::bad_alloc();
}

void AlignedBuffer::Free::operator()(char* data) const { std::free(data); }

void ThrowChanged(const fs::path& file) {
  throw Error(ErrorKind::kInput, file.string() + ": changed while it was being staged",
              "stage again once the checkpoint is complete");
}

ChunkReader::ChunkReader(const ReadFolder& root, const FileStamp& stamp, bool direct)
    : path_(root / stamp.name) {
  struct stat info{};
  if (StampFile(root, stamp.name) != stamp) ThrowChanged(path_);
  buffered_ = root.OpenFile(stamp.name);
  if (::fstat(buffered_.get(), &info) != 0) ThrowErrno(path_, "stat", errno);
  if (StampOf(info, stamp.name) != stamp) ThrowChanged(path_);
  if (!direct || Cached(stamp.bytes)) return;
  // Opens the same file again by its descriptor: its name may stand for another file by now.
  const std::string opened = "/proc/self/fd/" + std::to_string(buffered_.get());
  direct_.reset(::open(opened.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
}

// Whether the file is in the page cache, where a training run has just written it; reading it there
// is faster. Looks at pages all over the file, once, since each look takes locks that reading
// threads need.
bool ChunkReader::Cached(uint64_t bytes) const {
  constexpr uint64_t kLooks = 64;
  constexpr uint64_t kResidentMin = 58;  // about nine in ten
  if (bytes == 0) return true;
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, buffered_.get(), 0);
  if (mapped == MAP_FAILED) return false;
  uint64_t resident = 0;
  for (uint64_t look = 0; look < kLooks; ++look) {
    const uint64_t offset = bytes / kLooks * look / kPageBytes * kPageBytes;
    unsigned char page = 0;
    const bool known = ::mincore(static_cast<char*>(mapped) + offset, 1, &page) == 0;
    resident += known && (page & 1) != 0 ? 1 : 0;
  }
  ::munmap(mapped, bytes);
  return resident >= kResidentMin;
}

// Returns the bytes read before the file's end, or before a refusal, which leaves the rest to the
// page cache.
uint64_t ChunkReader::ReadDirect(char* buffer, uint64_t offset, uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes && done % kPageBytes == 0) {
    const ssize_t got = ::pread(direct_.get(), buffer + done, WholePages(bytes - done),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EINVAL && errno != EOPNOTSUPP) ThrowErrno(path_, "read", errno);
    if (got < 0) direct_.reset();
    if (got <= 0) break;
    done += static_cast<uint64_t>(got);
  }
  return std::min(done, bytes);
}

uint64_t ChunkReader::Read(AlignedBuffer* buffer, uint64_t offset, uint64_t bytes) {
  uint64_t done = 0;
  if (direct_) done = ReadDirect(buffer->data(), offset, bytes);
  const uint64_t past_cache = done;
  while (done < bytes) {
    const ssize_t got = ::pread(buffered_.get(), buffer->data() + done, bytes - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowErrno(path_, "read", errno);
    if (got == 0) ThrowChanged(path_);
    done += static_cast<uint64_t>(got);
  }
  return past_cache;
}

}  // namespace evald
