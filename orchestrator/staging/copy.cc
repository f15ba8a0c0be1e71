#include "orchestrator/staging/copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "base/cores.h"
#include "base/hash.h"
#include "evald/error.h"
#include "orchestrator/staging/chunk_reader.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kBlockBytes = 1024 * 1024;
constexpr auto kTick = std::chrono::milliseconds(100);

class Copier {
 public:
  Copier(const ReadFolder& source, const std::vector<FileStamp>& files, const fs::path& target,
         const CopyOptions& options, const CopyHooks& hooks);
  ~Copier() { StopAndJoin(); }

  CopyResult Run();

 private:
  // A thread's open files: those of the chunk that it works on.
  struct Open {
    size_t file = SIZE_MAX;
    std::unique_ptr<ChunkReader> reader;
    UniqueFd target;
  };

  void SetOrder();
  void Work();
  void CopyChunk(uint64_t number, Open* open, AlignedBuffer* buffer);
  void OpenFile(size_t file, Open* open) const;
  void Watch();
  void TellProgress() const;
  void StopAndJoin();

  const ReadFolder& source_;
  const std::vector<FileStamp>& files_;
  const fs::path& target_;
  const CopyHooks& hooks_;
  const bool direct_;
  const uint64_t block_bytes_;
  const int threads_wanted_;

  // Each chunk's slot is written by the thread that copies the chunk
  std::vector<HashedFile> hashed_;
  // Number of each file's first chunk, and the total at the end
  std::vector<uint64_t> first_chunk_;
  // Numbers of all chunks, in the order in which they are copied
  std::vector<uint64_t> order_;
  uint64_t bytes_total_ = 0;
  std::atomic<size_t> next_{0};  // an index into order_
  std::atomic<uint64_t> bytes_done_{0};
  std::atomic<uint64_t> bytes_direct_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::exception_ptr failure_;
  int running_ = 0;

  std::vector<std::thread> threads_;
};

Copier::Copier(const ReadFolder& source, const std::vector<FileStamp>& files,
               const fs::path& target, const CopyOptions& options, const CopyHooks& hooks)
    : source_(source),
      files_(files),
      target_(target),
      hooks_(hooks),
      direct_(options.direct),
      block_bytes_(options.block_bytes == 0 ? kBlockBytes : options.block_bytes),
      threads_wanted_(options.threads == 0 ? DefaultCopyThreads() : options.threads) {
  if (kHashChunkBytes % block_bytes_ != 0 || threads_wanted_ < 1) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("found blocks of {} bytes and {} threads, expected a divisor of {} and at "
                    "least 1",
                    block_bytes_, threads_wanted_, kHashChunkBytes));
  }
  first_chunk_.push_back(0);
  for (const FileStamp& file : files_) {
    const uint64_t chunks = HashChunksOf(file.bytes);
    hashed_.push_back({file.name, file.bytes, std::vector<std::string>(chunks)});
    first_chunk_.push_back(first_chunk_.back() + chunks);
    bytes_total_ += file.bytes;
  }
  SetOrder();
}

// An engine that follows the copy needs configuration and headers before all other bytes.
void Copier::SetOrder() {
  for (const bool early : {true, false}) {
    for (size_t file = 0; file < files_.size(); ++file) {
      const bool weights = files_[file].name.ends_with(".safetensors");
      for (uint64_t number = first_chunk_[file]; number < first_chunk_[file + 1]; ++number) {
        if ((!weights || number == first_chunk_[file]) == early) order_.push_back(number);
      }
    }
  }
}

void Copier::OpenFile(size_t file, Open* open) const {
  if (open->file == file) return;
  open->reader = std::make_unique<ChunkReader>(source_, files_[file], direct_);
  if (!target_.empty()) {
    const fs::path path = target_ / files_[file].name;
    open->target.reset(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!open->target) ThrowErrno(path, "open for writing", errno);
  }
  open->file = file;
}

void Copier::CopyChunk(uint64_t number, Open* open, AlignedBuffer* buffer) {
  const auto after = std::upper_bound(first_chunk_.begin(), first_chunk_.end(), number);
  const auto file = static_cast<size_t>(after - first_chunk_.begin() - 1);
  OpenFile(file, open);
  const uint64_t chunk = number - first_chunk_[file];
  const uint64_t begin = chunk * kHashChunkBytes;
  const uint64_t end = std::min(begin + kHashChunkBytes, files_[file].bytes);
  Hasher hasher;
  for (uint64_t offset = begin; offset < end && !stop_; offset += block_bytes_) {
    const uint64_t bytes = std::min(block_bytes_, end - offset);
    bytes_direct_ += open->reader->Read(buffer, offset, bytes);
    hasher.Update(buffer->data(), bytes);
    if (open->target) {
      WriteAt(open->target.get(), {buffer->data(), bytes}, offset, target_ / files_[file].name);
    }
    bytes_done_ += bytes;
  }
  if (stop_) return;
  hashed_[file].chunks[chunk] = hasher.Hex();
  if (hooks_.landed && open->target) hooks_.landed(file, chunk);
}

void Copier::Work() {
  std::exception_ptr failure;
  try {
    AlignedBuffer buffer(block_bytes_);
    Open open;
    for (size_t i = next_++; i < order_.size() && !stop_; i = next_++) {
      CopyChunk(order_[i], &open, &buffer);
    }
  } catch (...) {
    failure = std::current_exception();
    stop_ = true;
  }
  const std::lock_guard lock(mutex_);
  if (failure && !failure_) failure_ = failure;
  --running_;
  changed_.notify_one();
}

void Copier::TellProgress() const {
  if (hooks_.progress) hooks_.progress(bytes_done_, bytes_total_);
}

// Reports progress until all threads have ended.
void Copier::Watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kTick, [&] { return running_ == 0; })) {
    lock.unlock();
    ThrowIfCancelled(hooks_.cancel);
    TellProgress();
    lock.lock();
  }
}

void Copier::StopAndJoin() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

CopyResult Copier::Run() {
  const auto useful = static_cast<int>(std::clamp<uint64_t>(order_.size(), 1, 1024));
  const int count = std::min(threads_wanted_, useful);
  running_ = count;
  for (int i = 0; i < count; ++i) threads_.emplace_back([this] { Work(); });
  Watch();
  StopAndJoin();
  if (failure_) std::rethrow_exception(failure_);
  TellProgress();
  ThrowIfCancelled(hooks_.cancel);
  for (const FileStamp& file : files_) {
    if (StampFile(source_, file.name) != file) ThrowChanged(source_ / file.name);
  }
  std::string fingerprint = TreeFingerprint(hashed_);
  return {std::move(fingerprint), std::move(hashed_), bytes_done_, bytes_direct_, count};
}

}  // namespace

int DefaultCopyThreads() { return std::clamp(2 * UsableCores(), 8, 16); }

void ThrowIfCancelled(const std::atomic<bool>* cancel) {
  if (cancel != nullptr && *cancel) {
    throw Error(ErrorKind::kInfrastructure, "staging was cancelled");
  }
}

CopyResult CopyTree(const ReadFolder& source, const std::vector<FileStamp>& files,
                    const fs::path& target, const CopyOptions& options, const CopyHooks& hooks) {
  return Copier(source, files, target, options, hooks).Run();
}

}  // namespace evald
