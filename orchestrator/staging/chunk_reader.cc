#include "orchestrator/staging/chunk_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

ChunkReader::ChunkReader(const fs::path& root, const FileStamp& stamp, bool direct)
    : path_(root / stamp.name) {
  if (StampFile(root, stamp.name) != stamp) ThrowChanged(path_);
  buffered_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!buffered_) ThrowErrno(path_, "open", errno);
  if (direct) direct_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
}

// Looks at the first pages of the piece: a file just written by a training run lies in memory
// already, and reading it from there is the faster.
bool ChunkReader::Cached(uint64_t offset, uint64_t bytes) const {
  constexpr uint64_t kLookedAt = 64 * kPageBytes;
  const uint64_t looked_at = std::min(bytes, kLookedAt);
  void* mapped = ::mmap(nullptr, looked_at, PROT_READ, MAP_SHARED, buffered_.get(),
                        static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return false;
  std::array<unsigned char, kLookedAt / kPageBytes> resident{};
  const bool known = ::mincore(mapped, looked_at, resident.data()) == 0;
  ::munmap(mapped, looked_at);
  const auto end = resident.begin() + static_cast<ptrdiff_t>(WholePages(looked_at) / kPageBytes);
  return known && std::all_of(resident.begin(), end, [](unsigned char page) { return page & 1; });
}

// Bytes read before the file's end or a refusal, which leaves the rest to the page cache.
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
  if (direct_ && !Cached(offset, bytes)) done = ReadDirect(buffer->data(), offset, bytes);
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
