#include "worker/native/cuda/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "evald/error.h"
#include "worker/native/cuda/convert.h"
#include "worker/native/cuda/numa.h"

namespace evald::native::cuda {
namespace {

constexpr int kThreads = 8;
constexpr uint64_t kPlaceBytes = 16;                // tensors in a buffer are aligned to this
constexpr std::chrono::milliseconds kPatience{50};  // between two checks of whether to stop

// A stretch of one transfer.
using Piece = DeviceWeights::Transfer;

uint64_t StoredBytes(const Piece& piece) { return piece.elements * ElementBytes(piece.stored); }
uint64_t WantedBytes(const Piece& piece) { return piece.elements * ElementBytes(piece.wanted); }
uint64_t PlaceBytes(const Piece& piece) {
  return (WantedBytes(piece) + kPlaceBytes - 1) / kPlaceBytes * kPlaceBytes;
}

// The pieces [first, end), which go through one buffer together.
struct Chunk {
  size_t first = 0;
  size_t end = 0;
};

std::vector<Piece> Cut(const std::vector<Piece>& transfers, uint64_t chunk_bytes) {
  std::vector<Piece> pieces;
  for (const Piece& whole : transfers) {
    const uint64_t stored = ElementBytes(whole.stored), wanted = ElementBytes(whole.wanted);
    const uint64_t most = chunk_bytes / std::max(stored, wanted);
    for (uint64_t at = 0; at < whole.elements; at += most) {
      Piece piece = whole;
      piece.from += at * stored;
      piece.offset += at * stored;
      piece.to += at * wanted;
      piece.elements = std::min(most, whole.elements - at);
      pieces.push_back(piece);
    }
  }
  return pieces;
}

// Packs as many neighbours as fit into a buffer: most tensors of a mixture of experts are small.
std::vector<Chunk> Pack(const std::vector<Piece>& pieces, uint64_t chunk_bytes) {
  std::vector<Chunk> chunks;
  uint64_t bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (chunks.empty() || bytes + PlaceBytes(pieces[i]) > chunk_bytes) {
      chunks.push_back({i, i});
      bytes = 0;
    }
    chunks.back().end = i + 1;
    bytes += PlaceBytes(pieces[i]);
  }
  return chunks;
}

// Throws Error(kInfrastructure) with the file's name.
void ReadExactly(int file, uint64_t offset, uint64_t bytes, char* to) {
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file, to + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const std::string why =
          got == 0 ? "the file ends before the weight does" : std::string(std::strerror(errno));
      std::error_code ignored;
      const auto path =
          std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), ignored);
      throw Error(
          ErrorKind::kInfrastructure,
          fmt::format("{}: a weight at byte {} cannot be read: {}", path.string(), offset, why));
    }
    done += static_cast<uint64_t>(got);
  }
}

int NodeOf(const PullOptions& options) {
  if (options.numa_node >= 0) return options.numa_node;
  for (const GpuInfo& gpu : ListGpus()) {
    if (options.uuid.empty() || gpu.uuid == options.uuid) return gpu.numa_node;
  }
  return -1;
}

bool IsSticky(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const DeviceError& error) {
    return error.sticky();
  } catch (...) {
    return false;
  }
}

}  // namespace

// One copy thread's stream and buffers. Made on that thread, so that they lie on its node.
struct Puller::Lane {
  explicit Lane(const PullOptions& options)
      : buffers(MemoryKind::kPinned, options.chunk_bytes * static_cast<uint64_t>(options.depth)) {
    for (int i = 0; i < options.depth; ++i) copied.emplace_back();
  }

  Memory buffers;
  std::vector<char> stored;  ///< of a piece that is converted
  Stream stream;
  std::deque<Event> copied;  ///< by buffer: the device has read it
};

// One Run, shared by all its threads.
class Puller::Work {
 public:
  Work(const PullOptions& options, const std::vector<int>& cpus,
       const std::vector<DeviceWeights::Transfer>& transfers, Arrival* arrival,
       PullProgress* progress)
      : options_(options),
        cpus_(cpus),
        pieces_(Cut(transfers, options.chunk_bytes)),
        chunks_(Pack(pieces_, options.chunk_bytes)),
        arrival_(arrival),
        progress_(progress) {
    for (const Piece& piece : pieces_) {
      report_.bytes += StoredBytes(piece);
      report_.device_bytes += WantedBytes(piece);
    }
    if (progress_ != nullptr) {
      progress_->bytes = 0;
      progress_->total = report_.bytes;
    }
  }

  size_t chunks() const { return chunks_.size(); }

  // Runs a copy thread. Makes `lane` if there is none yet.
  void Thread(std::unique_ptr<Lane>* lane) {
    int64_t waited = 0;
    try {
      if (!options_.uuid.empty()) UseGpu(options_.uuid);
      BindNear(cpus_);
      if (*lane == nullptr) *lane = std::make_unique<Lane>(options_);
      CopyChunks(lane->get(), &waited);
    } catch (...) {
      Fail(std::current_exception());
    }
    // Also after a failure: nothing may write to the device, or read a buffer, any more.
    try {
      if (*lane != nullptr) (*lane)->stream.Synchronize();
    } catch (...) {
      Fail(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    longest_wait_ = std::max(longest_wait_, waited);
  }

  void Stop() { stop_ = true; }

  // Call after all threads have ended. Throws the failure, if any.
  PullReport Finish() {
    if (failure_) std::rethrow_exception(failure_);
    report_.waited_seconds = 1e-6 * static_cast<double>(longest_wait_);
    return report_;
  }

 private:
  void CopyChunks(Lane* lane, int64_t* waited) {
    for (size_t turn = 0; !stop_; ++turn) {
      const size_t chunk = next_++;
      if (chunk >= chunks_.size()) return;
      const size_t buffer = turn % lane->copied.size();
      for (size_t i = chunks_[chunk].first; i < chunks_[chunk].end; ++i) {
        if (!WaitFor(pieces_[i], waited)) return;
      }
      lane->copied[buffer].Synchronize();
      Copy(chunks_[chunk], lane->buffers.data() + buffer * options_.chunk_bytes, lane);
      lane->copied[buffer].Record(lane->stream);
    }
  }

  // Returns false if all threads stop.
  bool WaitFor(const Piece& piece, int64_t* waited) {
    if (!ShallGoOn()) return false;
    if (arrival_ == nullptr) return true;
    const int64_t begin = MonotonicMicros();
    while (!arrival_->Wait(piece.from, StoredBytes(piece), kPatience)) {
      if (!ShallGoOn()) return false;
    }
    *waited += MonotonicMicros() - begin;
    return true;
  }

  bool ShallGoOn() const {
    if (progress_ != nullptr && progress_->cancel) {
      throw Error(ErrorKind::kInfrastructure, "the pull of the weights was cancelled");
    }
    return !stop_;
  }

  // Writes the piece's weights, as the device wants them, to `to`.
  static void Read(const Piece& piece, std::vector<char>* stored, char* to) {
    const char* from = piece.from;
    if (piece.file >= 0) {
      const uint64_t bytes = StoredBytes(piece);
      const bool converted = piece.stored != piece.wanted;
      if (converted && stored->size() < bytes) stored->resize(bytes);
      char* const read = converted ? stored->data() : to;
      ReadExactly(piece.file, piece.offset, bytes, read);
      if (!converted) return;
      from = read;
    }
    if (Convert(from, piece.stored, piece.elements, piece.wanted, to)) return;
    throw Error(ErrorKind::kInput, "a weight is too large for fp16, which the device computes in",
                "convert the checkpoint to bf16");
  }

  void Copy(const Chunk& chunk, char* buffer, Lane* lane) {
    uint64_t at = 0, bytes = 0;
    for (size_t i = chunk.first; i < chunk.end; ++i) {
      const Piece& piece = pieces_[i];
      Read(piece, &lane->stored, buffer + at);
      CopyToDevice(piece.to, buffer + at, WantedBytes(piece), lane->stream);
      at += PlaceBytes(piece);
      bytes += StoredBytes(piece);
    }
    if (progress_ != nullptr) progress_->bytes += bytes;
  }

  // The first failure counts, unless a later one leaves the device unusable. The runtime keeps
  // errors by thread, so this thread clears its own.
  void Fail(std::exception_ptr failure) {
    stop_ = true;
    const bool sticky = IsSticky(failure);
    if (!sticky) ClearError();
    const std::lock_guard lock(mutex_);
    if (!failure_ || (sticky && !IsSticky(failure_))) failure_ = std::move(failure);
  }

  const PullOptions& options_;
  const std::vector<int>& cpus_;
  const std::vector<Piece> pieces_;
  const std::vector<Chunk> chunks_;
  Arrival* arrival_;
  PullProgress* progress_;
  PullReport report_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // guards the following members
  std::exception_ptr failure_;
  int64_t longest_wait_ = 0;
};

Json ToJson(const PullReport& report) {
  return {{"bytes", report.bytes},
          {"device_bytes", report.device_bytes},
          {"seconds", report.seconds},
          {"gb_per_s", report.gb_per_s()},
          {"waited_seconds", report.waited_seconds},
          {"threads", report.threads}};
}

Puller::Puller(PullOptions options)
    : options_(std::move(options)), cpus_(CpusNear(NodeOf(options_))) {
  options_.depth = std::max(options_.depth, 1);
  options_.chunk_bytes = std::max(options_.chunk_bytes / kPlaceBytes, uint64_t{1}) * kPlaceBytes;
  if (options_.threads <= 0) {
    options_.threads = std::clamp(static_cast<int>(cpus_.size()), 1, kThreads);
  }
}

Puller::~Puller() = default;

PullReport Puller::Run(const std::vector<DeviceWeights::Transfer>& transfers, Arrival* arrival,
                       PullProgress* progress) {
  const int64_t begin = MonotonicMicros();
  Work work(options_, cpus_, transfers, arrival, progress);
  const size_t count = std::min(static_cast<size_t>(options_.threads), work.chunks());
  if (lanes_.size() < count) lanes_.resize(count);
  std::vector<std::thread> threads;
  try {
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([&work, lane = &lanes_[i]] { work.Thread(lane); });
    }
  } catch (...) {  // no more threads can be started
    work.Stop();
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  PullReport report = work.Finish();
  report.threads = static_cast<int>(count);
  report.seconds = 1e-6 * static_cast<double>(MonotonicMicros() - begin);
  return report;
}

PullReport Pull(const DeviceWeights& weights, const PullOptions& options) {
  return Puller(options).Run(weights.transfers());
}

}  // namespace evald::native::cuda
