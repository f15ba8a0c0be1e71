#include "orchestrator/staging/staged_checkpoint.h"

#include <utility>

#include "base/log.h"

namespace evald {

Json ToJson(const StageReport& report) {
  return {{"bytes", report.bytes},
          {"bytes_read", report.bytes_read},
          {"bytes_direct", report.bytes_direct},
          {"reused", report.reused},
          {"waited", report.waited},
          {"verified", report.verified},
          {"threads", report.threads},
          {"seconds", report.seconds},
          {"skipped", report.skipped}};
}

StagedCheckpoint::StagedCheckpoint(StagingRoot root, std::string fingerprint, StagedLease lease,
                                   uint64_t keep_bytes, StageReport report)
    : root_(std::move(root)),
      fingerprint_(std::move(fingerprint)),
      directory_(root_.FolderOf(fingerprint_)),
      lease_(std::move(lease)),
      keep_bytes_(keep_bytes),
      report_(std::move(report)) {}

StagedCheckpoint::StagedCheckpoint(StagedCheckpoint&& other) noexcept
    : root_(std::move(other.root_)),
      fingerprint_(std::move(other.fingerprint_)),
      directory_(std::move(other.directory_)),
      lease_(std::move(other.lease_)),
      keep_bytes_(other.keep_bytes_),
      report_(std::move(other.report_)),
      held_(other.held_) {
  other.held_ = false;
}

StagedCheckpoint::~StagedCheckpoint() {
  try {
    Release();
  } catch (const std::exception& error) {
    log::Warn("staged checkpoint not released: {}", error.what());
  }
}

bool StagedCheckpoint::Release() {
  if (!held_) return false;
  held_ = false;
  const bool fits = keep_bytes_ > 0 && report_.bytes <= keep_bytes_;
  if (fits) root_.Keep(fingerprint_);
  lease_ = StagedLease();
  if (fits) {
    root_.ShrinkKept(keep_bytes_);
    return false;
  }
  if (keep_bytes_ == 0 && root_.IsKept(fingerprint_)) return false;
  return root_.Drop(fingerprint_);
}

}  // namespace evald
