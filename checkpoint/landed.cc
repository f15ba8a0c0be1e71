#include "checkpoint/landed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "evald/json.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr char kMagic[16] = "evald-landed-1\n";
constexpr uint64_t kFilesBytesMax = uint64_t{64} << 20;
constexpr uint64_t kChunksMax = uint64_t{1} << 32;

enum State : uint32_t { kStaging = 0, kPublished = 1, kFailed = 2 };

// The beginning of the record. The list of files follows as JSON, then one byte for each chunk.
struct Header {
  char magic[16];
  uint32_t state;
  uint32_t event;  // changes with everything else; waiters sleep on it
  uint64_t chunk_bytes;
  uint64_t files_bytes;
  uint64_t chunks;
  char fingerprint[32];
};
static_assert(sizeof(Header) == 80);

Header* HeaderOf(const SharedMapping& mapping) { return reinterpret_cast<Header*>(mapping.data()); }

template <typename T>
std::atomic_ref<T> Atomic(T& value) {
  return std::atomic_ref<T>(value);
}

void WakeAll(Header* header) {
  Atomic(header->event).fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &header->event, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Sleeps until the event has changed, the time is over, or the kernel wakes the thread without
// cause.
void Sleep(Header* header, uint32_t event, std::chrono::nanoseconds time) {
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(time.count() / 1'000'000'000);
  timeout.tv_nsec = static_cast<long>(time.count() % 1'000'000'000);
  ::syscall(SYS_futex, &header->event, FUTEX_WAIT, event, &timeout, nullptr, 0);
}

uint64_t ChunksOf(uint64_t bytes) {
  return bytes / kLandedChunkBytes + (bytes % kLandedChunkBytes == 0 ? 0 : 1);
}

[[noreturn]] void RefuseRecord(const fs::path& path, const std::string& what) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", path.string(), what),
              "stage the checkpoint again");
}

}  // namespace

SharedMapping::SharedMapping(int fd, uint64_t bytes, bool writable, const fs::path& path)
    : size_(bytes) {
  void* data =
      ::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) ThrowErrno(path, "map", errno);
  data_ = static_cast<char*>(data);
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

LandedWriter::LandedWriter(const fs::path& folder, const std::vector<CheckpointFile>& files)
    : path_(folder / kLandedFile) {
  Json list = Json::array();
  uint64_t chunks = 0;
  for (const CheckpointFile& file : files) {
    list.push_back(Json::array({file.name, file.bytes}));
    first_chunk_.push_back(chunks);
    chunks += ChunksOf(file.bytes);
  }
  const std::string text = list.dump();
  const uint64_t bytes = sizeof(Header) + text.size() + chunks;
  // A process that opens the record under its name finds a whole and locked one.
  const fs::path making = path_.string() + ".part";
  fd_.reset(::open(making.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd_) ThrowErrno(making, "create", errno);
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) ThrowErrno(making, "flock", errno);
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
    ThrowErrno(making, "set the length", errno);
  }
  mapping_ = SharedMapping(fd_.get(), bytes, true, making);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.chunk_bytes = kLandedChunkBytes;
  header.files_bytes = text.size();
  header.chunks = chunks;
  const std::string begin(reinterpret_cast<const char*>(&header), sizeof header);
  // The record is written, because a write reports a full disk. A store into the mapping would end
  // in a signal.
  const std::string whole = begin + text + std::string(chunks, '\0');
  for (size_t done = 0; done < whole.size();) {
    const ssize_t put =
        ::pwrite(fd_.get(), whole.data() + done, whole.size() - done, static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) ThrowErrno(making, "write", errno);
    done += static_cast<size_t>(put);
  }
  if (::rename(making.c_str(), path_.c_str()) != 0) ThrowErrno(path_, "rename", errno);
}

LandedWriter::~LandedWriter() {
  if (mapping_.data() == nullptr) return;
  Header* header = HeaderOf(mapping_);
  if (Atomic(header->state).load() == kStaging) {
    Atomic(header->state).store(kFailed);
    WakeAll(header);
  }
  Hide();
}

void LandedWriter::Landed(size_t file, uint64_t chunk) {
  Header* header = HeaderOf(mapping_);
  char* chunks = mapping_.data() + sizeof(Header) + header->files_bytes;
  Atomic(chunks[first_chunk_.at(file) + chunk]).store(1, std::memory_order_release);
  WakeAll(header);
}

void LandedWriter::Hide() {
  if (std::exchange(hidden_, true)) return;
  ::unlink(path_.c_str());
}

void LandedWriter::Publish(const std::string& fingerprint) {
  Header* header = HeaderOf(mapping_);
  if (fingerprint.size() != sizeof header->fingerprint) {
    throw Error(ErrorKind::kInternal, fmt::format("'{}' is no fingerprint", fingerprint));
  }
  std::memcpy(header->fingerprint, fingerprint.data(), fingerprint.size());
  Atomic(header->state).store(kPublished, std::memory_order_release);
  WakeAll(header);
}

bool LandedReader::Exists(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(folder / kLandedFile, error));
}

LandedReader::LandedReader(const fs::path& folder)
    : path_(folder / kLandedFile),
      folder_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!folder_) ThrowErrno(folder, "open", errno);
  fd_.reset(::openat(folder_.get(), kLandedFile, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd_) ThrowErrno(path_, "open", errno);
  struct stat info{};
  if (::fstat(fd_.get(), &info) != 0) ThrowErrno(path_, "stat", errno);
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || bytes < sizeof(Header)) {
    RefuseRecord(path_, "is no record of a staging");
  }
  mapping_ = SharedMapping(fd_.get(), bytes, false, path_);
  const Header& header = *HeaderOf(mapping_);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.chunk_bytes != kLandedChunkBytes || header.files_bytes > kFilesBytesMax ||
      header.chunks > kChunksMax || bytes != sizeof(Header) + header.files_bytes + header.chunks) {
    RefuseRecord(path_, "is no record of a staging that this version of evald knows");
  }
  const char* text = mapping_.data() + sizeof(Header);
  const Json list = ParseJson(std::string(text, header.files_bytes), path_.string());
  uint64_t chunk = 0;
  for (const Json& file : list) {
    if (!file.is_array() || file.size() != 2 || !file[0].is_string() ||
        !file[1].is_number_unsigned()) {
      RefuseRecord(path_, "has a list of files in an unknown form");
    }
    files_.push_back({file[0].get<std::string>(), file[1].get<uint64_t>()});
    places_[files_.back().name] = {files_.back().bytes, chunk};
    chunk += ChunksOf(files_.back().bytes);
  }
  if (chunk != header.chunks)
    RefuseRecord(path_, "lists files of another size than it has chunks for");
  chunks_ = text + header.files_bytes;
}

fs::path LandedReader::folder() const { return fmt::format("/proc/self/fd/{}", folder_.get()); }

bool LandedReader::HasLanded(uint64_t first, uint64_t end) const {
  for (uint64_t i = first; i < end; ++i) {
    // atomic_ref needs a type that is not const. Nothing is written.
    auto& landed = const_cast<char&>(chunks_[i]);
    if (Atomic(landed).load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

// The staging process holds the lock as long as it lives.
void LandedReader::CheckAlive() const {
  Header* header = HeaderOf(mapping_);
  bool abandoned = false;
  if (Atomic(header->state).load(std::memory_order_acquire) == kStaging &&
      ::flock(fd_.get(), LOCK_SH | LOCK_NB) == 0) {
    ::flock(fd_.get(), LOCK_UN);
    abandoned = Atomic(header->state).load(std::memory_order_acquire) == kStaging;
  }
  if (abandoned || Atomic(header->state).load(std::memory_order_acquire) == kFailed) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: the staging {} before all had landed",
                            path_.parent_path().string(), abandoned ? "was abandoned" : "failed"),
                "stage the checkpoint again");
  }
}

bool LandedReader::Wait(const std::string& file, uint64_t begin, uint64_t end,
                        std::chrono::milliseconds timeout) const {
  const auto place = places_.find(file);
  if (place == places_.end() || begin > end || end > place->second.first) {
    RefuseRecord(path_, fmt::format("knows no bytes {} to {} of {}", begin, end, file));
  }
  if (begin == end) return true;
  const uint64_t first_chunk = place->second.second;
  const uint64_t first = first_chunk + begin / kLandedChunkBytes;
  const uint64_t last = first_chunk + ChunksOf(end);
  Header* header = HeaderOf(mapping_);
  const int64_t deadline = MonotonicMicros() + timeout.count() * 1000;
  while (true) {
    const uint32_t event = Atomic(header->event).load(std::memory_order_acquire);
    if (HasLanded(first, last)) return true;
    CheckAlive();
    const int64_t left = deadline - MonotonicMicros();
    if (left <= 0) return false;
    Sleep(header, event, std::chrono::microseconds(left));
  }
}

std::optional<std::string> LandedReader::Published() const {
  Header* header = HeaderOf(mapping_);
  if (Atomic(header->state).load(std::memory_order_acquire) != kPublished) return std::nullopt;
  return std::string(header->fingerprint, sizeof header->fingerprint);
}

}  // namespace evald
