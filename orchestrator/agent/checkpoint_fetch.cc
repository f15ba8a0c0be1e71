#include "orchestrator/agent/checkpoint_fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "checkpoint/layout.h"
#include "checkpoint/weight_index.h"
#include "evald/error.h"
#include "http_server/target.h"
#include "orchestrator/agent/file_client.h"
#include "orchestrator/staging/free_space.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kRangeBytes = 16 << 20;
constexpr int kConnections = 4;
constexpr useconds_t kPollMicros = 50'000;

class RemoveAtEnd {
 public:
  explicit RemoveAtEnd(fs::path folder) : folder_(std::move(folder)) {}
  ~RemoveAtEnd() {
    if (fs::exists(fs::symlink_status(folder_))) RemoveTree(folder_);
  }

 private:
  fs::path folder_;
};

std::string EncodePath(const std::string& name) {
  std::string encoded;
  for (const fs::path& part : fs::path(name)) encoded += "/" + http::PercentEncode(part.string());
  return encoded;
}

}  // namespace

CheckpointFetch::CheckpointFetch(OrchestratorAddress address, const std::string& instance,
                                 StagerOptions staging)
    : address_(std::move(address)),
      url_(fmt::format("/v1/agents/{}/checkpoints/", instance)),
      staging_(std::move(staging)),
      root_(staging_.root) {}

StagedCheckpoint CheckpointFetch::Wrap(const std::string& fingerprint, StagedLease lease,
                                       StageReport report) const {
  root_.MarkUsed(fingerprint);
  return StagedCheckpoint(root_, fingerprint, std::move(lease), staging_.keep_bytes,
                          std::move(report));
}

StagedCheckpoint CheckpointFetch::Obtain(const std::string& fingerprint,
                                         const std::atomic<bool>* cancel) const {
  const auto reuse = [&]() -> std::optional<StagedCheckpoint> {
    auto lease = root_.Lease(fingerprint);
    if (!lease) return std::nullopt;
    StageReport report;
    report.reused = true;
    return Wrap(fingerprint, std::move(*lease), report);
  };
  if (auto staged = reuse()) return std::move(*staged);
  FileClient client(address_, cancel);
  const Json about = ParseJson(client.Get(url_ + fingerprint), url_);
  const std::string source = Field<std::string>(about, "source", url_);
  std::error_code unseen;
  if (!source.empty() && fs::is_directory(source, unseen)) {
    try {
      CopyHooks hooks;
      hooks.cancel = cancel;
      StagedCheckpoint own = Stager(staging_).Stage(source, hooks);
      if (own.fingerprint() == fingerprint) return own;
      log::Info("{} holds another checkpoint here; it is fetched from the orchestrator", source);
    } catch (const Error& e) {
      log::Warn("{}; it is fetched from the orchestrator", e.what());
    }
  }
  std::vector<File> files;
  for (const Json& file : Field<std::vector<Json>>(about, "files", url_)) {
    files.push_back({Field<std::string>(file, "name", url_), Field<uint64_t>(file, "bytes", url_)});
    if (!StaysInside(files.back().name)) {
      throw Error(ErrorKind::kInput,
                  fmt::format("'{}' is no name for a file of a checkpoint", files.back().name));
    }
  }
  while (true) {
    ThrowIfCancelled(cancel);
    if (const auto owned = root_.TryOwn("fetch-" + fingerprint)) {
      if (auto staged = reuse()) return std::move(*staged);  // the former owner has staged it
      return Fetch(fingerprint, files, cancel);
    }
    ::usleep(kPollMicros);
  }
}

StagedCheckpoint CheckpointFetch::Fetch(const std::string& fingerprint,
                                        const std::vector<File>& files,
                                        const std::atomic<bool>* cancel) const {
  const int64_t begin = MonotonicMicros();
  const fs::path folder = root_.StagingFolderOf("fetch-" + fingerprint);
  const RemoveAtEnd remove(folder);
  uint64_t bytes = 0;
  for (const File& file : files) bytes += file.bytes;
  while (const auto shortage = Shortage(root_.path(), bytes)) {
    if (!root_.DropLeastRecentlyUsed()) ThrowShortage(*shortage, bytes, root_.path());
  }
  FetchInto(folder, fingerprint, files, cancel);
  std::vector<FileStamp> stamps;
  for (const File& file : files) stamps.push_back(StampFile(folder, file.name));
  CopyHooks hooks;
  hooks.cancel = cancel;
  const std::string found = CopyTree(folder, stamps, {}, staging_.copy, hooks).fingerprint;
  if (found != fingerprint) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("the checkpoint that came has the fingerprint {}, expected {}", found,
                            fingerprint));
  }
  CheckShards(ReadCheckpointLayout(folder));
  StagedRecord record;
  record.fingerprint = fingerprint;
  record.source = address_.server;
  record.source_id = "fetch-" + fingerprint;
  record.bytes = bytes;
  record.staged_at = WallSeconds();
  StageReport report;
  report.bytes = report.bytes_read = bytes;
  report.threads = kConnections;
  StagedLease lease = root_.Publish(folder, record);
  report.seconds = 1e-6 * static_cast<double>(MonotonicMicros() - begin);
  log::Info("checkpoint {} fetched: {} bytes in {:.2f} s", fingerprint, bytes, report.seconds);
  return Wrap(fingerprint, std::move(lease), std::move(report));
}

// Fetches ranges of all files over a few connections, which take ranges in turn.
void CheckpointFetch::FetchInto(const fs::path& folder, const std::string& fingerprint,
                                const std::vector<File>& files,
                                const std::atomic<bool>* cancel) const {
  struct Range {
    const File* file;
    uint64_t first, count;
    int fd;
  };
  std::vector<UniqueFd> fds;
  std::vector<Range> ranges;
  for (const File& file : files) {
    const fs::path path = folder / file.name;
    MakeDirectories(path.parent_path());
    fds.emplace_back(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fds.back()) ThrowErrno(path, "create", errno);
    if (::ftruncate(fds.back().get(), static_cast<off_t>(file.bytes)) != 0)
      ThrowErrno(path, "ftruncate", errno);
    for (uint64_t first = 0; first < file.bytes; first += kRangeBytes) {
      ranges.push_back({&file, first, std::min(kRangeBytes, file.bytes - first), fds.back().get()});
    }
  }
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      FileClient client(address_, cancel);
      for (size_t i = next++; i < ranges.size(); i = next++) {
        const Range& range = ranges[i];
        client.GetRange(url_ + fingerprint + EncodePath(range.file->name), range.first, range.count,
                        range.fd);
      }
    } catch (...) {
      next = ranges.size();
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kConnections; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace evald
