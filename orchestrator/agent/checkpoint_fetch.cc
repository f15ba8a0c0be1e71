#include "orchestrator/agent/checkpoint_fetch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "checkpoint/layout.h"
#include "checkpoint/weight_index.h"
#include "evald/error.h"
#include "orchestrator/agent/chunk_fetch.h"
#include "orchestrator/agent/file_client.h"
#include "orchestrator/staging/chunk_list.h"
#include "orchestrator/staging/free_space.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

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

// The files of the service's answer. A service that knows no hashes of chunks names none.
std::vector<HashedFile> FilesOf(const Json& about, const std::string& fingerprint,
                                const std::string& where) {
  const Json list = Field<Json>(about, "files", where);
  if (!list.empty() && list[0].contains("chunks")) {
    std::vector<HashedFile> files = ChunkListFromJson(list, where);
    const std::string found = TreeFingerprint(files);
    if (found == fingerprint) return files;
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}{}: the hashes of its chunks make the fingerprint {}", where,
                            fingerprint, found));
  }
  std::vector<HashedFile> files;
  for (const Json& file : list) {
    files.push_back(
        {Field<std::string>(file, "name", where), Field<uint64_t>(file, "bytes", where), {}});
    if (!StaysInside(files.back().name)) {
      throw Error(ErrorKind::kInput,
                  fmt::format("'{}' is no name for a file of a checkpoint", files.back().name));
    }
  }
  return files;
}

}  // namespace

CheckpointFetch::CheckpointFetch(OrchestratorAddress address, std::string instance,
                                 StagerOptions staging, std::shared_ptr<ChunkShelf> shelf)
    : address_(std::move(address)),
      instance_(std::move(instance)),
      url_(fmt::format("/v1/agents/{}/checkpoints/", instance_)),
      staging_(std::move(staging)),
      root_(staging_.root),
      shelf_(std::move(shelf)) {
  if (!shelf_) shelf_ = std::make_shared<ChunkShelf>(root_.path());
}

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
  const std::vector<HashedFile> files = FilesOf(about, fingerprint, url_);
  while (true) {
    ThrowIfCancelled(cancel);
    if (const auto owned = root_.TryOwn("fetch-" + fingerprint)) {
      if (auto staged = reuse()) return std::move(*staged);  // the former owner has staged it
      return Fetch(fingerprint, files, cancel);
    }
    ::usleep(kPollMicros);
  }
}

bool CheckpointFetch::NothingStaged() const {
  try {
    return ListStaged(root_.path()).empty();
  } catch (const Error&) {
    return false;
  }
}

StagedCheckpoint CheckpointFetch::Fetch(const std::string& fingerprint,
                                        const std::vector<HashedFile>& files,
                                        const std::atomic<bool>* cancel) const {
  const int64_t begin = MonotonicMicros();
  const fs::path folder = root_.StagingFolderOf("fetch-" + fingerprint);
  const RemoveAtEnd remove(folder);
  StageReport report;
  for (const HashedFile& file : files) report.bytes += file.bytes;
  report.bytes_read = report.bytes;
  while (const auto shortage = Shortage(root_.path(), report.bytes)) {
    if (!root_.DropLeastRecentlyUsed()) ThrowShortage(*shortage, report.bytes, root_.path());
  }
  ChunkFetch fetch({address_, instance_, staging_.state / "peers", fingerprint, cancel}, folder,
                   files);
  const bool checked = fetch.checks();
  // Others may fetch what has come, until the folder has its final name
  std::unique_ptr<ChunkShelf::Filling> filling;
  if (checked) filling = shelf_->Fill(fingerprint, folder, files);
  fetch.Run(filling.get());
  if (checked) WriteChunkList(folder, files);
  if (!checked || staging_.verify) CheckWhole(folder, fingerprint, files, cancel);
  CheckShards(ReadCheckpointLayout(folder));
  StagedRecord record;
  record.fingerprint = fingerprint;
  record.source = address_.server;
  record.source_id = "fetch-" + fingerprint;
  record.bytes = report.bytes;
  record.staged_at = WallSeconds();
  StagedLease lease = root_.Publish(folder, record);
  report.seconds = 1e-6 * static_cast<double>(MonotonicMicros() - begin);
  std::string from;
  for (const auto& [source, bytes] : fetch.bytes_from())
    from += fmt::format(", {} from {}", bytes, source == kServiceSource ? "the service" : source);
  log::Info("checkpoint {} fetched: {} bytes in {:.2f} s{}", fingerprint, report.bytes,
            report.seconds, from);
  return Wrap(fingerprint, std::move(lease), std::move(report));
}

// Reads the files again and compares their tree hash.
void CheckpointFetch::CheckWhole(const fs::path& folder, const std::string& fingerprint,
                                 const std::vector<HashedFile>& files,
                                 const std::atomic<bool>* cancel) const {
  std::vector<FileStamp> stamps;
  for (const HashedFile& file : files) stamps.push_back(StampFile(folder, file.name));
  CopyHooks hooks;
  hooks.cancel = cancel;
  const std::string found = CopyTree(folder, stamps, {}, staging_.copy, hooks).fingerprint;
  if (found == fingerprint) return;
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("the checkpoint that came has the fingerprint {}, expected {}", found,
                          fingerprint));
}

}  // namespace evald
