#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "bench/bench.h"
#include "bench/weights_memory.h"
#include "evald/error.h"
#include "orchestrator/staging/chunk_reader.h"
#include "orchestrator/staging/stager.h"

// Staging a checkpoint from disk into shared memory. The baseline is the least work with the same
// effect: the same number of threads reads and writes the same bytes, with no hash, no check and no
// lock.
namespace evald::bench {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kChunkBytes = 4 * 1024 * 1024;
constexpr uint64_t kBlockBytes = 1024 * 1024;
constexpr int kShards = 4;
constexpr int kRounds = 3;

void Check(bool good, const fs::path& path, const char* what) {
  if (!good) ThrowErrno(path, what, errno);
}

// Random bytes, so that nothing on the way can compress them. `state` goes on from call to call.
void Fill(std::string* buffer, uint64_t* state) {
  for (size_t i = 0; i + 8 <= buffer->size(); i += 8) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    std::memcpy(buffer->data() + i, state, 8);
  }
}

// One tensor of `data_bytes` random bytes, a multiple of kChunkBytes.
void MakeShard(const fs::path& path, const std::string& tensor, uint64_t data_bytes,
               uint64_t* state) {
  const std::string header =
      fmt::format(R"({{"{}":{{"dtype":"U8","shape":[{}],"data_offsets":[0,{}]}}}})", tensor,
                  data_bytes, data_bytes);
  PendingFile file(path);
  const uint64_t length = header.size();
  file.Append({reinterpret_cast<const char*>(&length), sizeof length});
  file.Append(header);
  std::string buffer(kChunkBytes, '\0');
  for (uint64_t done = 0; done < data_bytes; done += kChunkBytes) {
    Fill(&buffer, state);
    file.Append(buffer);
  }
  file.Commit();
}

void MakeCheckpoint(const fs::path& folder, uint64_t bytes) {
  MakeDirectories(folder);
  Json map = Json::object();
  uint64_t state = 20261121;
  for (int i = 0; i < kShards; ++i) {
    const std::string shard = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, kShards);
    const std::string tensor = fmt::format("layer.{}", i);
    MakeShard(folder / shard, tensor, bytes / kShards, &state);
    map[tensor] = shard;
  }
  WriteFileAtomic(folder / "config.json", R"({"model_type":"llama"})");
  WriteFileAtomic(folder / "tokenizer.json", "{}");
  WriteFileAtomic(folder / "model.safetensors.index.json",
                  ToLine(Json{{"metadata", Json::object()}, {"weight_map", map}}));
}

void DropPageCache(const CheckpointLayout& layout) {
  for (const CheckpointFile& file : layout.files) {
    const UniqueFd fd(::open((layout.root / file.name).c_str(), O_RDONLY | O_CLOEXEC));
    Check(static_cast<bool>(fd), layout.root / file.name, "open");
    ::fsync(fd.get());
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

// Touches twice as many pages as are needed and gives them back. The first touch of a virtual
// machine's memory is slow, and the first measurement would include that time.
void TouchMemory(const fs::path& folder, uint64_t bytes) {
  const fs::path path = folder / "touch";
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Check(static_cast<bool>(fd), path, "create");
  const std::string buffer(kChunkBytes, 't');
  for (uint64_t done = 0; done < 2 * bytes; done += buffer.size()) {
    if (::write(fd.get(), buffer.data(), buffer.size()) < 0) break;
  }
  ::unlink(path.c_str());
}

// One file of the plain copy.
struct PlainFile {
  UniqueFd from;
  UniqueFd to;
  uint64_t bytes = 0;
  uint64_t first_chunk = 0;
};

void CopyPlainChunk(const PlainFile& file, uint64_t chunk, char* buffer) {
  const uint64_t end = std::min((chunk + 1) * kChunkBytes, file.bytes);
  for (uint64_t offset = chunk * kChunkBytes; offset < end;) {
    const ssize_t got = ::pread(file.from.get(), buffer, kBlockBytes, static_cast<off_t>(offset));
    Check(got > 0, "plain copy", "read");
    const auto bytes = std::min(static_cast<uint64_t>(got), end - offset);
    Check(::pwrite(file.to.get(), buffer, bytes, static_cast<off_t>(offset)) ==
              static_cast<ssize_t>(bytes),
          "plain copy", "write");
    offset += bytes;
  }
}

// Seconds that the plain copy takes.
double CopyPlain(const CheckpointLayout& layout, const fs::path& target, int threads, bool direct) {
  MakeDirectories(target);
  const int64_t begin = MonotonicMicros();
  std::vector<PlainFile> files;
  uint64_t chunks = 0;
  for (const CheckpointFile& named : layout.files) {
    const fs::path from = layout.root / named.name, to = target / named.name;
    PlainFile file;
    file.from.reset(::open(from.c_str(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0)));
    file.to.reset(::open(to.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    Check(file.from && file.to, from, "open");
    Check(::ftruncate(file.to.get(), static_cast<off_t>(named.bytes)) == 0, to, "set the length");
    file.bytes = named.bytes;
    file.first_chunk = chunks;
    chunks += (named.bytes + kChunkBytes - 1) / kChunkBytes;
    files.push_back(std::move(file));
  }
  std::atomic<uint64_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      AlignedBuffer buffer(kBlockBytes);
      for (uint64_t number = next++; number < chunks; number = next++) {
        const auto file =
            std::prev(std::find_if(files.begin(), files.end(),
                                   [&](const PlainFile& f) { return f.first_chunk > number; }));
        CopyPlainChunk(*file, number - file->first_chunk, buffer.data());
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(work);
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
  return 1e-6 * static_cast<double>(MonotonicMicros() - begin);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Whether the disk can be read past the page cache. The plain copy then reads it in that way too.
bool CanReadDirect(const CheckpointLayout& layout) {
  const fs::path path = layout.root / layout.shards.front();
  return static_cast<bool>(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT)));
}

// A second staging, of a checkpoint that is still staged: no byte of it is read.
Json SecondStaging(const StagerOptions& options, const fs::path& source) {
  Stager(options).Stage(source).Release();
  const int64_t begin = MonotonicMicros();
  const StagedCheckpoint again = Stager(options).Stage(source);
  return {{"bytes_read", again.report().bytes_read},
          {"reused", again.report().reused},
          {"seconds", 1e-6 * static_cast<double>(MonotonicMicros() - begin)}};
}

// The folder in shared memory. The destructor removes it.
struct ScratchRoot {
  fs::path path = fmt::format("/dev/shm/evald-bench-{}", ::getpid());
  ~ScratchRoot() { RemoveTree(path); }
};

}  // namespace

Result RunStage(const Options& options) {
  const uint64_t bytes = (options.quick ? uint64_t{64} : uint64_t{1536}) << 20;
  const fs::path source = options.scratch / "checkpoint";
  MakeCheckpoint(source, bytes);
  const CheckpointLayout layout = ReadCheckpointLayout(source);
  const ScratchRoot scratch;
  StagerOptions stager;
  stager.root = scratch.path / "root";
  stager.state = options.scratch / "state";
  MakeDirectories(scratch.path);
  const bool direct = CanReadDirect(layout);
  const int threads = DefaultCopyThreads();
  TouchMemory(scratch.path, bytes);

  std::vector<double> plain, staged;
  uint64_t bytes_direct = 0;
  for (int round = 0; round < kRounds; ++round) {
    DropPageCache(layout);
    plain.push_back(CopyPlain(layout, scratch.path / "plain", threads, direct));
    RemoveTree(scratch.path / "plain");
    DropPageCache(layout);
    const StagedCheckpoint copy = Stager(stager).Stage(source);
    staged.push_back(copy.report().seconds);
    bytes_direct = copy.report().bytes_direct;
  }
  const double gigabytes = 1e-9 * static_cast<double>(layout.total_bytes);
  Result result;
  result.value = gigabytes / Median(staged);
  result.unit = "GB/s";
  result.baseline = fmt::format("plain {} read and pwrite with {} threads",
                                direct ? "O_DIRECT" : "buffered", threads);
  result.baseline_value = gigabytes / Median(plain);
  result.target = 0.9;
  stager.keep_bytes = 2 * layout.total_bytes;
  result.details = {{"bytes", layout.total_bytes},
                    {"bytes_direct", bytes_direct},
                    {"threads", threads},
                    {"staged_seconds", staged},
                    {"plain_seconds", plain},
                    {"second_staging", SecondStaging(stager, source)},
                    {"weights_memory", MeasureWeightsMemory(options)}};
  return result;
}

}  // namespace evald::bench
