#include "fetch/downloads.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"

namespace evald::fetch {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kSpareBytes = 64u << 20;  // for what else is written there meanwhile

// Callers that no thread uses now, with their connections.
class Callers {
 public:
  explicit Callers(const Access& access) : access_(access) {}
  std::unique_ptr<Caller> Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Caller>(access_);
    std::unique_ptr<Caller> caller = std::move(idle_.back());
    idle_.pop_back();
    return caller;
  }
  void Return(std::unique_ptr<Caller> caller) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(caller));
  }

 private:
  const Access& access_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Caller>> idle_;
};

}  // namespace

std::vector<JobEnd> DownloadAll(const std::vector<Job>& jobs, int parallel, const Access& access,
                                DownloadProgress* progress) {
  std::vector<JobEnd> ends(jobs.size());
  Callers callers(access);
  for (const Job& job : jobs)
    progress->bytes_total += static_cast<int64_t>(job.source.bytes.value_or(0));
  progress->files_total = static_cast<int64_t>(jobs.size());
  ParallelFor(static_cast<int64_t>(jobs.size()), parallel, [&](int64_t i) {
    const Job& job = jobs[static_cast<size_t>(i)];
    JobEnd& end = ends[static_cast<size_t>(i)];
    std::unique_ptr<Caller> caller = callers.Take();
    try {
      end.downloaded = Download(job.source, job.target, caller.get(), &progress->bytes);
    } catch (const Error& error) {
      end.failure = error;
    }
    callers.Return(std::move(caller));
    ++progress->files;
  });
  return ends;
}

void RequireRoom(const fs::path& folder, uint64_t bytes) {
  fs::path there = fs::absolute(folder).lexically_normal();
  struct statvfs room{};
  while (::statvfs(there.c_str(), &room) != 0) {
    if (errno != ENOENT || !there.has_relative_path()) ThrowErrno(there, "statvfs", errno);
    there = there.parent_path();
  }
  const uint64_t available = uint64_t{room.f_bavail} * room.f_frsize;
  if (bytes == 0 || bytes + kSpareBytes <= available) return;
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: the files need {}, and its file system has {} free", folder.string(),
                          HumanBytes(bytes + kSpareBytes), HumanBytes(available)),
              "make room, or name another folder");
}

uint64_t BytesToWrite(std::span<const Job> jobs) {
  uint64_t bytes = 0;
  for (const Job& job : jobs) {
    std::error_code missing;
    const auto there = fs::file_size(job.target.string() + ".part", missing);
    const uint64_t whole = job.source.bytes.value_or(0);
    bytes += missing || there > whole ? whole : whole - there;
  }
  return bytes;
}

}  // namespace evald::fetch
