#include "orchestrator/staging/memo.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "orchestrator/staging/fingerprint.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr int kVersion = 1;
constexpr size_t kEntriesMax = 512;

}  // namespace

Json ToJson(const StagedRecord& record) {
  Json nested = Json::array();
  for (const FileStamp& stamp : record.nested) nested.push_back(ToJson(stamp));
  return {{"version", kVersion},          {"fingerprint", record.fingerprint},
          {"source", record.source},      {"source_id", record.source_id},
          {"nested", std::move(nested)},  {"bytes", record.bytes},
          {"staged_at", record.staged_at}};
}

StagedRecord RecordFromJson(const Json& json, const std::string& where) {
  if (Field<int>(json, "version", where) != kVersion) {
    throw Error(ErrorKind::kInput, where + ": is of another version of evald");
  }
  StagedRecord record;
  record.fingerprint = Field<std::string>(json, "fingerprint", where);
  record.source = Field<std::string>(json, "source", where);
  record.source_id = Field<std::string>(json, "source_id", where);
  for (const Json& stamp : Field<std::vector<Json>>(json, "nested", where)) {
    record.nested.push_back(StampFromJson(stamp, where));
  }
  record.bytes = Field<uint64_t>(json, "bytes", where);
  record.staged_at = Field<double>(json, "staged_at", where);
  if (!IsFingerprint(record.fingerprint)) {
    throw Error(ErrorKind::kInput, where + ": '" + record.fingerprint + "' is not a fingerprint");
  }
  return record;
}

bool NestedUnchanged(const StagedRecord& record, const ReadFolder& root) {
  return std::all_of(record.nested.begin(), record.nested.end(), [&](const FileStamp& stamp) {
    try {
      return StampFile(root, stamp.name) == stamp;
    } catch (const Error&) {
      return false;
    }
  });
}

std::optional<StagedRecord> StagingMemo::Find(const std::string& source_id) const {
  const fs::path path = folder_ / (source_id + ".json");
  if (folder_.empty() || !fs::exists(path)) return std::nullopt;
  try {
    StagedRecord record = RecordFromJson(ParseJson(ReadFile(path), path.string()), path.string());
    if (record.source_id == source_id) return record;
  } catch (const Error& error) {
    log::Warn("staging memo passed over: {}", error.what());
  }
  return std::nullopt;
}

void StagingMemo::Store(const StagedRecord& record) const {
  if (folder_.empty()) return;
  try {
    MakeDirectories(folder_);
    // Without fsync: a file that a power cut breaks is skipped later, and waiting for the disk
    // costs more than staging a small checkpoint.
    const fs::path path = folder_ / (record.source_id + ".json");
    const fs::path part = fmt::format("{}.{}.part", path.string(), ::getpid());
    std::ofstream(part, std::ios::binary) << ToLine(ToJson(record)) << '\n';
    fs::rename(part, path);
    Prune();
  } catch (const std::exception& error) {
    log::Warn("staging memo not written: {}", error.what());
  }
}

void StagingMemo::Forget(const std::string& source_id) const {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove(folder_ / (source_id + ".json"), ignored);
}

void StagingMemo::Prune() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> entries;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    std::error_code error;
    const auto time = entry.last_write_time(error);
    if (!error) entries.emplace_back(time, entry.path());
  }
  if (entries.size() <= kEntriesMax) return;
  std::sort(entries.begin(), entries.end());
  entries.resize(entries.size() - kEntriesMax);
  for (const auto& [time, path] : entries) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
}

}  // namespace evald
