#include "orchestrator/staging/identity.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/hash.h"
#include "base/jsonl.h"
#include "checkpoint/layout.h"
#include "evald/error.h"

namespace evald {
namespace {

int64_t Nanoseconds(const struct timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Json ToJson(const FileStamp& stamp) {
  return {{"name", stamp.name},   {"device", stamp.device},     {"inode", stamp.inode},
          {"bytes", stamp.bytes}, {"mtime_ns", stamp.mtime_ns}, {"ctime_ns", stamp.ctime_ns}};
}

FileStamp StampFromJson(const Json& json, const std::string& where) {
  return {Field<std::string>(json, "name", where), Field<uint64_t>(json, "device", where),
          Field<uint64_t>(json, "inode", where),   Field<uint64_t>(json, "bytes", where),
          Field<int64_t>(json, "mtime_ns", where), Field<int64_t>(json, "ctime_ns", where)};
}

FileStamp StampFile(const ReadFolder& root, const std::string& name) {
  struct stat info{};
  if (!root.Stat(name, &info)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {}", (root / name).string(),
                            root.roots().anywhere() ? std::strerror(errno) : ReadRoots::kNotThere),
                "stage again once the checkpoint is complete");
  }
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::kInput, (root / name).string() + ": is not a regular file");
  }
  return StampOf(info, name);
}

FileStamp StampOf(const struct stat& info, const std::string& name) {
  return {name,
          info.st_dev,
          info.st_ino,
          static_cast<uint64_t>(info.st_size),
          Nanoseconds(info.st_mtim),
          Nanoseconds(info.st_ctim)};
}

SourceIdentity IdentifySource(const ReadFolder& root) {
  SourceIdentity identity;
  Hasher hasher;
  hasher.Update("evald-source-1\n");
  for (const std::string& name : CandidateNames(root)) {
    const FileStamp stamp = StampFile(root, name);
    hasher.Update(ToLine(ToJson(stamp)) + "\n");
    identity.stamps.push_back(stamp);
  }
  identity.id = hasher.Hex();
  return identity;
}

}  // namespace evald
