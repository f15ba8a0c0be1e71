#include "orchestrator/agent/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/file_hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/random_id.h"
#include "evald/error.h"
#include "http_server/request_parser.h"
#include "http_server/target.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// A piece is the body of one request.
constexpr uint64_t kPieceBytes = http::RequestLimits{}.body_bytes_max;
constexpr const char* kNewSuffix = ".new";

class RemoveFileAtEnd {
 public:
  explicit RemoveFileAtEnd(fs::path path) : path_(std::move(path)) {}
  RemoveFileAtEnd(const RemoveFileAtEnd&) = delete;
  RemoveFileAtEnd& operator=(const RemoveFileAtEnd&) = delete;
  ~RemoveFileAtEnd() {
    std::error_code not_there;
    fs::remove(path_, not_there);
  }

 private:
  fs::path path_;
};

// The name, if it may become a file's name here. Throws Error if not.
std::string Checked(const std::string& name) {
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    throw Error(ErrorKind::kInput, fmt::format("'{}' is no name for a file of an agent", name));
  }
  return name;
}

// The last time when the folder or anything in it was written. A folder in which files vanish
// meanwhile is in use and counts as new.
fs::file_time_type NewestIn(const fs::path& folder) {
  std::error_code error;
  fs::file_time_type newest = fs::last_write_time(folder, error);
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    newest = std::max(newest, at->last_write_time(error));
    if (error) break;
  }
  return error ? fs::file_time_type::clock::now() : newest;
}

}  // namespace

Spool::Spool(fs::path folder, std::string instance)
    : folder_(std::move(folder)), url_("/v1/agents/" + instance) {
  MakeDirectories(folder_ / "prepared");
  MakeDirectories(folder_ / "runs");
}

// Fetches under a name of its own first: a file that has its name is complete, and two jobs may
// fetch the same file at once.
void Spool::Fetch(const std::string& url, const fs::path& target, std::optional<uint64_t> bytes,
                  const std::string& hash, FileClient* client) const {
  const fs::path part = fmt::format("{}.{}{}", target.string(), RandomId(2), kNewSuffix);
  const RemoveFileAtEnd remove(part);
  {
    const UniqueFd fd(::open(part.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) ThrowErrno(part, "open", errno);
    if (bytes) {
      client->GetRange(url, 0, *bytes, fd.get());
    } else {
      client->GetFile(url, fd.get());
    }
  }
  if (HashOfFile(part).hash != hash) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: the bytes that came do not have this hash", url));
  }
  fs::rename(part, target);
}

// Whether the folder holds the prepared task undamaged. A damaged one is removed, to be fetched
// again; a process that has its files open keeps them.
bool Spool::HoldsWhole(const fs::path& prepared, const std::string& tokenizer_key) {
  std::error_code ignored;
  if (!fs::is_directory(prepared, ignored)) return false;
  try {
    PreparedTask task(prepared);
    if (!tokenizer_key.empty()) task.AttachTokens(tokenizer_key);
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) throw;
    log::Warn("{}; it is fetched again", e.message());
    fs::remove_all(prepared, ignored);
    return false;
  }
}

std::string Spool::Prepared(const std::string& folder, const std::string& tokenizer_key,
                            FileClient* client) {
  const std::string key = Checked(fs::path(folder).filename().string());
  const fs::path mine = folder_ / "prepared" / key;
  const std::string tokens =
      tokenizer_key.empty() ? "" : fmt::format("tokens-{}.bin", Checked(tokenizer_key));
  const std::lock_guard lock(prepared_mutex_);
  const bool there = HoldsWhole(mine, tokenizer_key);
  if (there && (tokens.empty() || fs::exists(mine / tokens))) return mine.string();
  const std::string url = fmt::format("{}/prepared/{}", url_, http::PercentEncode(key));
  const Json list = ParseJson(client->Get(url), url);
  const fs::path making = there ? mine : folder_ / "prepared" / ("." + key);
  MakeDirectories(making);
  for (const Json& file : Field<std::vector<Json>>(list, "files", url)) {
    const std::string name = Checked(Field<std::string>(file, "name", url));
    const bool other_tokens = name.starts_with("tokens-") && name != tokens;
    if (other_tokens || (there && name != tokens)) continue;
    Fetch(url + "/" + http::PercentEncode(name), making / name, Field<uint64_t>(file, "bytes", url),
          Field<std::string>(file, "hash", url), client);
  }
  if (!there) fs::rename(making, mine);
  return mine.string();
}

// The place here of a run's file .../<generations|scores>/<task>/<file>.
fs::path Spool::Place(const std::string& run, const std::string& path) {
  const fs::path theirs(path);
  const fs::path folder = folder_ / "runs" / Checked(run) /
                          Checked(theirs.parent_path().parent_path().filename().string()) /
                          Checked(theirs.parent_path().filename().string());
  MakeDirectories(folder);
  const fs::path mine = folder / Checked(theirs.filename().string());
  const std::lock_guard lock(names_mutex_);
  names_[mine.string()] = path;
  return mine;
}

std::vector<std::string> Spool::Salvage(const fs::path& target) const {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(target.parent_path(), error)) {
    const std::string path = entry.path().string();
    const bool own = path.starts_with(target.string());
    if (!own && (path.ends_with(".jsonl") || path.ends_with(".jsonl.part"))) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

protocol::Lease Spool::Localize(const protocol::Lease& lease, FileClient* client) {
  protocol::Lease mine = lease;
  for (protocol::Slice& slice : mine.slices) {
    slice.prepared = Prepared(slice.prepared, slice.tokenizer_key, client);
    const fs::path target = Place(lease.run, slice.file);
    slice.file = target.string();
    slice.salvage = Salvage(target);
  }
  return mine;
}

protocol::Job Spool::Localize(const protocol::Job& job, FileClient* client) {
  protocol::Job mine = job;
  mine.prepared = Prepared(job.prepared, "", client);
  const fs::path generations = Place(job.run, job.generations);
  // Made on another host
  if (!fs::exists(generations) || HashOfFile(generations).hash != job.hash) {
    Fetch(fmt::format("{}/generations/{}", url_, http::PercentEncode(job.hash)), generations, {},
          job.hash, client);
  }
  mine.generations = generations.string();
  mine.file = Place(job.run, job.file).string();
  return mine;
}

std::string Spool::Give(const std::string& local, const std::string& hash, FileClient* client) {
  std::string theirs;
  {
    const std::lock_guard lock(names_mutex_);
    const auto name = names_.find(local);
    if (name == names_.end())
      throw Error(ErrorKind::kInternal, fmt::format("{}: no message asked for this file", local));
    theirs = name->second;
  }
  const UniqueFd fd(::open(local.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) ThrowErrno(local, "open", errno);
  const auto bytes = static_cast<uint64_t>(info.st_size);
  std::string piece(std::min(bytes, kPieceBytes), '\0');
  uint64_t offset = 0;
  do {
    const ssize_t got = ::pread(fd.get(), piece.data(), std::min(piece.size(), bytes - offset),
                                static_cast<off_t>(offset));
    if (got < 0 || (got == 0 && bytes > 0)) ThrowErrno(local, "read", got < 0 ? errno : EIO);
    client->Put(fmt::format("{}/files/{}?file={}&offset={}&bytes={}", url_, hash,
                            http::PercentEncode(theirs), offset, bytes),
                std::string_view(piece).substr(0, static_cast<size_t>(got)));
    offset += static_cast<uint64_t>(got);
  } while (offset < bytes);
  return theirs;
}

void Spool::Tidy(int days) const {
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::hours(24 * days);
  for (const char* kind : {"runs", "prepared"}) {
    std::error_code error;
    for (fs::directory_iterator at(folder_ / kind, error), end; !error && at != end;
         at.increment(error)) {
      std::error_code kept;
      if (NewestIn(at->path()) < oldest) fs::remove_all(at->path(), kept);
    }
  }
}

}  // namespace evald
