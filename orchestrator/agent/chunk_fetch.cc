#include "orchestrator/agent/chunk_fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/sha256.h"
#include "evald/error.h"
#include "http_server/target.h"
#include "orchestrator/agent/file_client.h"
#include "orchestrator/fleet/source_choice.h"
#include "orchestrator/staging/copy.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr useconds_t kWatchMicros = 20'000;
constexpr useconds_t kNotYetMicros = 20'000;    // before a chunk is asked for again
constexpr useconds_t kNobodyMicros = 500'000;   // before a source is asked for again
constexpr int64_t kTellMicros = 2'000'000;      // between reports to the service
constexpr int64_t kStalledMicros = 30'000'000;  // without a chunk from an agent
constexpr int64_t kServiceAwayMicros = 60'000'000;
constexpr int kNotYet = 409;
constexpr const char* kFaultNames[] = {"none", "unreachable", "silent", "wrong", "gone"};

std::string PathOf(const std::string& name) {
  std::string encoded;
  for (const fs::path& part : fs::path(name)) encoded += "/" + http::PercentEncode(part.string());
  return encoded;
}

uint64_t BytesOf(const HashedFile& file, uint64_t chunk) {
  return std::min(kHashChunkBytes, file.bytes - chunk * kHashChunkBytes);
}

bool AllHashed(const std::vector<HashedFile>& files) {
  return std::all_of(files.begin(), files.end(), [](const HashedFile& file) {
    return file.chunks.size() == HashChunksOf(file.bytes);
  });
}

SourceFault FaultOf(const FileClient::PeerAnswer& answer) {
  using http_client::Outcome;
  if (answer.status == 0) {
    const bool unreachable =
        answer.outcome == Outcome::kUnreachable || answer.outcome == Outcome::kUntrusted;
    return unreachable ? SourceFault::kUnreachable : SourceFault::kSilent;
  }
  const bool refused = answer.status >= 400 && answer.status < 500 && answer.status != 429;
  return refused ? SourceFault::kGone : SourceFault::kSilent;
}

}  // namespace

ChunkFetch::ChunkFetch(ChunkFetchOptions options, fs::path folder,
                       const std::vector<HashedFile>& files)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      files_(files),
      checked_(AllHashed(files)) {
  for (size_t i = 0; i < files_.size(); ++i) {
    const fs::path path = folder_ / files_[i].name;
    MakeDirectories(path.parent_path());
    fds_.emplace_back(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fds_.back()) ThrowErrno(path, "create", errno);
    if (::ftruncate(fds_.back().get(), static_cast<off_t>(files_[i].bytes)) != 0)
      ThrowErrno(path, "ftruncate", errno);
    for (uint64_t chunk = 0; chunk < HashChunksOf(files_[i].bytes); ++chunk)
      chunks_.push_back({i, chunk});
  }
  for (size_t i = 0; i < chunks_.size(); ++i) missing_.insert(missing_.end(), i);
}

ChunkFetch::~ChunkFetch() = default;

std::map<std::string, uint64_t> ChunkFetch::bytes_from() const {
  const std::lock_guard lock(mutex_);
  return bytes_from_;
}

int64_t ChunkFetch::Have() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(landed_);
}

void ChunkFetch::Run(ChunkShelf::Filling* filling) {
  filling_ = filling;
  const auto total = static_cast<int64_t>(chunks_.size());
  while (Have() < total) {
    ThrowIfCancelled(options_.cancel);
    const Source source = checked_ ? NextSource() : ServiceSource();
    if (source.url.empty()) {
      ::usleep(kNobodyMicros);
    } else {
      FetchFrom(source);
    }
  }
  if (!checked_) return;
  try {
    Ask("", options_.cancel);  // all is here: the source is free for another agent
  } catch (const Error& e) {
    log::Debug("checkpoint {}: {}", options_.fingerprint, e.what());
  }
}

// ---- sources

ChunkFetch::Source ChunkFetch::ServiceSource() const {
  return {kServiceSource, options_.service,
          fmt::format("/v1/agents/{}/checkpoints/{}", options_.instance, options_.fingerprint)};
}

// Tells the service how far this fetch is and what failed. Returns the source to fetch from now.
ChunkFetch::Source ChunkFetch::Ask(const std::string& current, const std::atomic<bool>* cancel) {
  Json question = {{"have", Have()}, {"total", chunks_.size()}, {"source", current}};
  std::string failed;
  {
    const std::lock_guard lock(mutex_);
    failed = failed_;
    if (!failed.empty()) {
      question["failed"] = failed;
      question["fault"] = kFaultNames[static_cast<int>(fault_)];
    }
  }
  const std::string path =
      fmt::format("/v1/agents/{}/sources/{}", options_.instance, options_.fingerprint);
  FileClient client(options_.service, cancel);
  const Json answer = ParseJson(client.PutAndGet(path, ToLine(question)), path);
  {
    const std::lock_guard lock(mutex_);
    if (failed_ == failed) failed_.clear();
  }
  const auto from = Field<std::string>(answer, "from", path);
  if (from == "nobody") return {};
  if (from != "agent") return ServiceSource();
  const auto authority = Field<std::string>(answer, "authority", path);
  const fs::path file = options_.authorities / (ContentKey(authority) + ".pem");
  if (!fs::exists(file)) {
    MakeDirectories(options_.authorities);
    WriteFileAtomic(file, authority);
  }
  const auto url = Field<std::string>(answer, "url", path);
  return {url,
          {"", url, Field<std::string>(answer, "token", path), file},
          "/v1/checkpoints/" + options_.fingerprint};
}

// Chunks that are here would be fetched again if this fetch failed. So the service may be away for
// a while.
ChunkFetch::Source ChunkFetch::AskPatiently() {
  const int64_t until_us = MonotonicMicros() + kServiceAwayMicros;
  while (true) {
    try {
      return Ask("", options_.cancel);
    } catch (const Error& e) {
      ThrowIfCancelled(options_.cancel);
      if (e.kind() != ErrorKind::kInfrastructure || MonotonicMicros() > until_us || Have() == 0)
        throw;
      ::usleep(kNobodyMicros);
    }
  }
}

ChunkFetch::Source ChunkFetch::NextSource() {
  return next_.url.empty() ? AskPatiently() : std::exchange(next_, {});
}

// Fetches until nothing is missing, the source has failed, or the service names another one.
void ChunkFetch::FetchFrom(const Source& source) {
  stop_ = false;
  landed_us_ = MonotonicMicros();
  const int connections = source.is_service() ? kServiceConnections : kPeerConnections;
  {
    const std::lock_guard lock(mutex_);
    running_ = connections;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < connections; ++i) threads.emplace_back([&] { Work(source); });
  WatchOver(source);
  for (std::thread& thread : threads) thread.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  ThrowIfCancelled(options_.cancel);
}

void ChunkFetch::WatchOver(const Source& source) {
  int64_t told_us = MonotonicMicros();
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (running_ == 0) return;
    }
    if (options_.cancel != nullptr && *options_.cancel) stop_ = true;
    const int64_t now = MonotonicMicros();
    if (checked_ && !stop_ && now - told_us > kTellMicros) {
      if (ShouldMove(source)) stop_ = true;
      told_us = MonotonicMicros();
    }
    ::usleep(kWatchMicros);
  }
}

// Reports to the service. While the service cannot be reached, the source stays as it is.
bool ChunkFetch::ShouldMove(const Source& source) {
  try {
    Source next = Ask(source.url, &stop_);
    if (next.url.empty() || next.url == source.url) return false;
    log::Info("checkpoint {}: it comes from {} from now on, no more from {}", options_.fingerprint,
              next.url, source.url);
    next_ = std::move(next);
    return true;
  } catch (const Error& e) {
    log::Debug("checkpoint {}: {}", options_.fingerprint, e.what());
    return false;
  }
}

// ---- chunks; on threads

void ChunkFetch::Work(const Source& source) {
  FileClient client(source.address, &stop_);
  std::string bytes;
  while (!stop_) {
    size_t next = 0;
    {
      const std::lock_guard lock(mutex_);
      if (missing_.empty()) break;
      next = *missing_.begin();
      missing_.erase(missing_.begin());
    }
    bool here = false;
    try {
      here = Bring(source, chunks_[next], &client, &bytes);
      if (here) Put(source, chunks_[next], bytes);
    } catch (...) {
      here = false;
      const std::lock_guard lock(mutex_);
      if (!stop_) failure_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard lock(mutex_);
    if (!here) missing_.insert(next);
  }
  const std::lock_guard lock(mutex_);
  --running_;
}

// Gets one chunk and checks it. False if the source is to be left.
bool ChunkFetch::Bring(const Source& source, const Chunk& chunk, FileClient* client,
                       std::string* bytes) {
  const HashedFile& file = files_[chunk.file];
  const uint64_t first = chunk.number * kHashChunkBytes, count = BytesOf(file, chunk.number);
  const std::string path = source.path + PathOf(file.name);
  while (!stop_) {
    if (source.is_service()) {
      *bytes = client->GetBytes(path, first, count);
    } else {
      FileClient::PeerAnswer answer = client->AskPeer(path, first, count);
      if (stop_) return false;
      if (answer.status == kNotYet && !Stalled()) {
        ::usleep(kNotYetMicros);
        continue;
      }
      if (answer.status != 206) {
        const bool stalled = answer.status == kNotYet;
        Fail(source, stalled ? SourceFault::kSilent : FaultOf(answer), answer.why);
        return false;
      }
      *bytes = std::move(answer.bytes);
    }
    if (!checked_ || HashHex(*bytes) == file.chunks[chunk.number]) return true;
    const std::string why = fmt::format("bytes {} to {} of {} are not the checkpoint's", first,
                                        first + count - 1, file.name);
    if (source.is_service())
      throw Error(ErrorKind::kInfrastructure, fmt::format("{}: {}", source.address.server, why));
    Fail(source, SourceFault::kWrong, why);
    return false;
  }
  return false;
}

void ChunkFetch::Put(const Source& source, const Chunk& chunk, const std::string& bytes) {
  const HashedFile& file = files_[chunk.file];
  WriteAt(fds_[chunk.file].get(), bytes, chunk.number * kHashChunkBytes, folder_ / file.name);
  if (filling_ != nullptr) filling_->Landed(chunk.file, chunk.number);
  landed_us_ = MonotonicMicros();
  const std::lock_guard lock(mutex_);
  ++landed_;
  bytes_from_[source.url] += bytes.size();
}

bool ChunkFetch::Stalled() const { return MonotonicMicros() - landed_us_ > kStalledMicros; }

// An agent failed: the service is told with the next question.
void ChunkFetch::Fail(const Source& source, SourceFault fault, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (stop_) return;
  stop_ = true;
  failed_ = source.url;
  fault_ = fault;
  log::Warn("checkpoint {}: {} is left ({}): {}", options_.fingerprint, source.url,
            kFaultNames[static_cast<int>(fault)], why);
}

}  // namespace evald
