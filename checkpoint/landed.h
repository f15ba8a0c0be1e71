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

/// What of a checkpoint has landed while it is staged: a record in the staging folder that whoever
/// stages writes and any process of the host maps. Its format is in docs/staging.md. Files have
/// their final lengths from the start; a byte of the record says whether 4 MiB of one have landed.
namespace evald {

/// The name of the record in a staging folder. Hidden, so no part of the checkpoint.
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

/// The side of whoever stages.
class LandedWriter {
 public:
  /// Makes the record in `folder`. Throws Error(kInfrastructure).
  LandedWriter(const std::filesystem::path& folder, const std::vector<CheckpointFile>& files);
  LandedWriter(const LandedWriter&) = delete;
  LandedWriter& operator=(const LandedWriter&) = delete;
  /// Unless it was published, the staging has failed.
  ~LandedWriter();

  /// Chunk `chunk` of the file at place `file` of the list is written. Any thread.
  void Landed(size_t file, uint64_t chunk);
  /// Takes the record's name away, so that it is not published; those who follow keep it.
  void Hide();
  /// The checkpoint has its final name.
  void Publish(const std::string& fingerprint);

 private:
  std::filesystem::path path_;
  UniqueFd fd_;  ///< locked: its owner lives
  SharedMapping mapping_;
  std::vector<uint64_t> first_chunk_;  ///< of each file
  bool hidden_ = false;
};

/// The side of a process that follows. All methods but the constructor may be called by any thread.
class LandedReader {
 public:
  /// Throws Error(kInfrastructure) when there is no record (any more), Error(kInput) when it is not
  /// one.
  explicit LandedReader(const std::filesystem::path& folder);

  static bool Exists(const std::filesystem::path& folder);

  /// A name of the folder that stays good when it is published under another, while this lives.
  std::filesystem::path folder() const;
  /// Files and lengths, as they will be.
  const std::vector<CheckpointFile>& files() const { return files_; }
  /// True once bytes [begin, end) of `file` have landed, false after `timeout`. Throws
  /// Error(kInfrastructure) when the staging has failed, or whoever did it is gone, before they
  /// did; Error(kInput) for a file that has no such bytes.
  bool Wait(const std::string& file, uint64_t begin, uint64_t end,
            std::chrono::milliseconds timeout) const;
  /// The fingerprint that what was staged is published under; nothing while it is not.
  std::optional<std::string> Published() const;

 private:
  bool HasLanded(uint64_t first, uint64_t end) const;
  void CheckAlive() const;

  std::filesystem::path path_;
  UniqueFd folder_;
  UniqueFd fd_;
  SharedMapping mapping_;
  std::vector<CheckpointFile> files_;
  std::map<std::string, std::pair<uint64_t, uint64_t>> places_;  ///< bytes and first chunk
  const char* chunks_ = nullptr;
};

}  // namespace evald
