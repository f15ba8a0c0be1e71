#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "fetch/download.h"

namespace evald::fetch {

struct Job {
  Source source;
  std::filesystem::path target;
};

struct JobEnd {
  std::optional<Downloaded> downloaded;
  std::optional<Error> failure;  ///< if it was not downloaded
};

/// Followed by another thread while files come.
struct DownloadProgress {
  std::atomic<int64_t> bytes_total{0}, files_total{0};  ///< set before the first byte comes
  std::atomic<int64_t> bytes{0};                        ///< that are there
  std::atomic<int64_t> files{0};                        ///< that have ended, one way or the other
};

/// Downloads the files, `parallel` at a time. Each ends for itself: a failure stops no other.
std::vector<JobEnd> DownloadAll(const std::vector<Job>& jobs, int parallel, const Access& access,
                                DownloadProgress* progress);

/// Throws Error(kInfrastructure) unless the file system of `folder` (or of the nearest folder above
/// it that is there) has room for `bytes` more, and some to spare.
void RequireRoom(const std::filesystem::path& folder, uint64_t bytes);

/// The bytes that the jobs have yet to write: what their part files have is there already. Sizes
/// that are not known count as none.
uint64_t BytesToWrite(std::span<const Job> jobs);

}  // namespace evald::fetch
