#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/layout.h"

/// The parts of a checkpoint that have landed (are copied whole) during its staging, kept in a
/// record in the staging folder. The staging process writes the record, and any process of the host
/// may map it. docs/staging.md gives the format. Files have their final lengths from the start. For
/// each 4 MiB of a file, one byte of the record says whether they have landed.
namespace evald {

/// The name of the record in a staging folder. The name is hidden, so the record is no part of the
/// checkpoint.
inline constexpr const char* kLandedFile = ".evald-landed";
inline constexpr uint64_t kLandedChunkBytes = uint64_t{4} << 20;

/// A shared mapping of a whole file.
class SharedMapping {
 public:
  SharedMapping() = default;
  SharedMapping(int fd, uint64_t bytes, bool writable, const std::filesystem::path& path);
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();

  char* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  uint64_t size_ = 0;
};

/// The side of the staging process.
class LandedWriter {
 public:
  /// Makes the record in `folder`. Throws Error(kInfrastructure).
  LandedWriter(const std::filesystem::path& folder, const std::vector<CheckpointFile>& files);
  LandedWriter(const LandedWriter&) = delete;
  LandedWriter& operator=(const LandedWriter&) = delete;
  /// Marks the staging as failed if Publish was not called.
  ~LandedWriter();

  /// Chunk `chunk` of file number `file` of the list is written. Any thread.
  void Landed(size_t file, uint64_t chunk);
  /// Removes the record's name, so that the published folder does not contain the record. Processes
  /// that have mapped the record keep their mapping.
  void Hide();
  /// Tells the processes that follow the staging that the checkpoint has its final name. Renames
  /// nothing.
  void Publish(const std::string& fingerprint);

 private:
  std::filesystem::path path_;
  UniqueFd fd_;  ///< locked: the staging process lives
  SharedMapping mapping_;
  std::vector<uint64_t> first_chunk_;  ///< of each file
  bool hidden_ = false;
};

/// The side of a process that follows. Any thread may call the methods; one thread constructs.
class LandedReader {
 public:
  /// Throws Error(kInfrastructure) if there is no record (any more), and Error(kInput) if the file
  /// is no record.
  explicit LandedReader(const std::filesystem::path& folder);

  static bool Exists(const std::filesystem::path& folder);

  /// A name of the folder that stays valid as long as this object lives, even if the folder is
  /// published under another name.
  std::filesystem::path folder() const;
  /// The files and their final lengths.
  const std::vector<CheckpointFile>& files() const { return files_; }
  /// True once bytes [begin, end) of `file` have landed, false after `timeout`. Throws
  /// Error(kInfrastructure) if the staging fails or the staging process ends before the bytes have
  /// landed. Throws Error(kInput) if the file has no such bytes.
  bool Wait(const std::string& file, uint64_t begin, uint64_t end,
            std::chrono::milliseconds timeout) const;
  /// The fingerprint under which the staged checkpoint was published; nothing before that.
  std::optional<std::string> Published() const;

 private:
  bool HasLanded(uint64_t first, uint64_t end) const;
  void CheckAlive() const;

  std::filesystem::path path_;
  UniqueFd folder_;
  UniqueFd fd_;
  SharedMapping mapping_;
  std::vector<CheckpointFile> files_;
  /// length in bytes and first chunk
  std::map<std::string, std::pair<uint64_t, uint64_t>> places_;
  const char* chunks_ = nullptr;
};

}  // namespace evald
