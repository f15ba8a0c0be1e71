#include "orchestrator/run/run_directory.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/names.h"
#include "base/own_folder.h"
#include "base/random_id.h"
#include "base/text.h"
#include "base/version.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

std::string Timestamp() {
  const std::time_t now = static_cast<std::time_t>(WallSeconds());
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(now));
}

bool IsFinished(const Json& record) { return record.at("state") == "done"; }

// run.json of one of many folders; nothing, with a warning, if it is damaged.
std::optional<Json> ReadRecordOrWarn(const fs::path& directory) {
  try {
    return RunDirectory::ReadRecord(directory);
  } catch (const Error& e) {
    log::Warn("passed over: {}", e.message());
    return std::nullopt;
  }
}

// The newest unfinished run below `output` with this deciding configuration.
fs::path FindUnfinished(const fs::path& output, const Json& deciding) {
  fs::path best;
  double best_created = -1;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(output, error)) {
    const auto record = ReadRecordOrWarn(entry.path());
    if (!record || IsFinished(*record) || record->at("deciding") != deciding) continue;
    if (const std::string foreign = WhyNotOwn(entry.path()); !foreign.empty()) {
      log::Warn("{}: {}; passed over", entry.path().string(), foreign);
      continue;
    }
    const double created = record->at("created").get<double>();
    if (created > best_created) {
      best_created = created;
      best = entry.path();
    }
  }
  if (best.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: no unfinished run of this configuration", output.string()),
                "start it without --resume, or name the run: --resume RUN");
  }
  return best;
}

}  // namespace

namespace {

// The holder of the lock, as Lock writes it: "pid 123 on host"; "" if unknown.
std::string HolderIn(int lock) {
  char text[300];
  const ssize_t length = ::pread(lock, text, sizeof text, 0);
  return length <= 0 ? ""
                     : PrintableLine(Trim(std::string_view(text, static_cast<size_t>(length))));
}

// Refuses a folder that another user could have filled, or could exchange.
void RequireOwn(const fs::path& path) {
  const std::string foreign = WhyNotOwn(path);
  if (foreign.empty()) return;
  throw Error(ErrorKind::kUsage, fmt::format("{}: the run's folder {}", path.string(), foreign),
              "choose another output.name, or an output.dir that only you may write to");
}

[[noreturn]] void RefuseTaken(const fs::path& path) {
  if (const std::string other = RunDirectory::AtWorkIn(path); !other.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: {} is at work on this run", path.string(), other),
                "wait for it, or choose another output.name");
  }
  const auto record = ReadRecordOrWarn(path);
  throw Error(ErrorKind::kUsage, fmt::format("{}: this run exists already", path.string()),
              record && IsFinished(*record)
                  ? "choose another output.name, or delete it"
                  : "choose another output.name, finish it with --resume, or delete it");
}

}  // namespace

std::string RunDirectory::AtWorkIn(const fs::path& directory) {
  const UniqueFd lock(::open((directory / ".lock").c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return "";
  const std::string holder = HolderIn(lock.get());
  return holder.empty() ? "another evald" : fmt::format("another evald ({})", holder);
}

std::optional<Json> RunDirectory::ReadRecord(const fs::path& directory) {
  const fs::path file = directory / "run.json";
  std::error_code failure;
  if (!fs::is_regular_file(file, failure)) {
    const int number = failure.value();
    if (failure && number != ENOENT && number != ENOTDIR) ThrowErrno(file, "stat", number);
    return std::nullopt;
  }
  try {
    Json record = ParseJson(ReadFile(file), file.string());
    for (const char* key : {"id", "state"}) Field<std::string>(record, key, file.string());
    Field<double>(record, "created", file.string());
    if (!WrongWithName(record.at("id").get<std::string>()).empty()) {
      ThrowField(record, "id", "a run's id", file.string());
    }
    if (!Field<Json>(record, "deciding", file.string()).is_object()) {
      ThrowField(record, "deciding", "an object", file.string());
    }
    return record;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kInfrastructure) throw;  // the disk's fault, not the file's
    throw Error(ErrorKind::kInput, e.message(),
                "a run cannot be resumed without its record: put run.json back from a copy, or "
                "start a new run");
  }
}

RunDirectory RunDirectory::Create(const EvalConfig& config) {
  RunDirectory run;
  try {
    MakeDirectories(config.output_dir);
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("{}: key 'output.dir': {}", config.called, e.message()),
                e.remedy());
  }
  const std::string base = config.run_name.empty()
                               ? fmt::format("{}-{}", Slug(config.name), Timestamp())
                               : config.run_name;
  std::string name = FolderNameOf(base);
  for (int suffix = 2;; ++suffix) {
    run.path_ = config.output_dir / name;
    const int number = MakeFolder(run.path_);
    if (number == 0) break;
    if (number != EEXIST) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: cannot create the run's folder: {}", run.path_.string(),
                              std::strerror(number)),
                  "choose an output.dir that you may write to");
    }
    if (run.TakeRemains()) break;
    if (!config.run_name.empty()) RefuseTaken(run.path_);
    name = FolderNameOf(fmt::format("{}-{}", base, suffix));
  }
  FsyncDirectory(config.output_dir);
  FailPoint("run.folder_made");
  MakeDirectories(run.path_ / "logs");
  run.id_ = RandomId(2);
  if (!run.lock_) run.Lock();
  run.Update({{"id", run.id_},
              {"evald_version", kEvaldVersion},
              {"state", "running"},
              {"created", WallSeconds()},
              {"eval_yaml", config.file.string()},
              {"config", ToJson(config)},
              {"deciding", ToJson(config, true)}});
  return run;
}

RunDirectory RunDirectory::Resume(const EvalConfig& config, const std::string& name) {
  RunDirectory run;
  const Json deciding = ToJson(config, true);
  if (name.empty()) {
    run.path_ = FindUnfinished(config.output_dir, deciding);
  } else {
    const fs::path named = config.output_dir / FolderNameOf(name);
    run.path_ = fs::is_directory(named) ? named : config.output_dir / name;
    if (!fs::is_directory(run.path_)) run.path_ = name;
  }
  RequireOwn(run.path_);
  const auto record = ReadRecord(run.path_);
  if (!record) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: not a run's folder (no run.json)", run.path_.string()));
  }
  run.record_ = *record;
  run.id_ = run.record_.at("id").get<std::string>();
  if (IsFinished(run.record_)) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: this run is finished", run.path_.string()),
                "start a new one without --resume");
  }
  if (run.record_.at("deciding") != deciding) {
    const Json& before = run.record_["deciding"];
    std::set<std::string> keys;
    for (const auto& [key, value] : deciding.items()) {
      if (before.value(key, Json()) != value) keys.insert(key);
    }
    for (const auto& [key, value] : before.items()) {
      if (!deciding.contains(key)) keys.insert(key);
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: the run was begun with another configuration; differing: {}",
                            run.path_.string(), fmt::join(keys, ", ")),
                "resume with the same eval.yaml and --set values, or start a new run");
  }
  run.Lock();
  run.Update({{"state", "running"}});
  return run;
}

// Whether the folder is the remains of a start that was killed before it wrote run.json; if so,
// takes its lock. Such a run has nothing to resume.
bool RunDirectory::TakeRemains() {
  if (fs::is_symlink(path_)) return false;
  RequireOwn(path_);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    const std::string name = entry.path().filename().string();
    if (name != "logs" && name != ".lock" && name != "run.json.part") return false;
  }
  if (error) return false;
  try {
    Lock();
  } catch (const Error&) {  // another process is just making it
    return false;
  }
  if (!fs::exists(path_ / "run.json")) return true;
  lock_.reset();
  return false;
}

void RunDirectory::Lock() {
  const fs::path file = path_ / ".lock";
  // Whoever may open the file may lock it: nobody else may.
  constexpr mode_t kMode = 0600;
  lock_.reset(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kMode));
  if (!lock_) ThrowErrno(file, "open", errno);
  if (::fchmod(lock_.get(), kMode) != 0) {  // that of an earlier version could be read by all
    log::Warn("{}: its mode cannot be set: {}", file.string(), std::strerror(errno));
  }
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    const std::string other = AtWorkIn(path_);
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: {} is at work on this run", path_.string(),
                            other.empty() ? "another evald" : other),
                "wait for it, or stop it");
  }
  // The text is for people; only the lock counts.
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string holder = fmt::format("pid {} on {}\n", ::getpid(), host);
  if (::ftruncate(lock_.get(), 0) != 0 ||
      ::pwrite(lock_.get(), holder.data(), holder.size(), 0) < 0) {
    log::Warn("{}: cannot be written", file.string());
  }
}

namespace {

std::string TextOf(const Json& record) {
  return record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string RunDirectory::Text() const { return TextOf(record_); }

void RunDirectory::Amend(const fs::path& directory, const Json& members) {
  Json record = ReadRecord(directory).value_or(Json::object());
  record.update(members);
  WriteFileAtomic(directory / "run.json", TextOf(record));
}

namespace {

// Whether workers have written answers there. Those of a file that no trial has ended yet count,
// too.
bool HoldsAnswers(const fs::path& directory) {
  const fs::path folder = directory / "generations";
  if (!fs::exists(folder)) return false;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.file_size() > 0) return true;
  }
  return false;
}

}  // namespace

bool RunDirectory::Remove(const fs::path& directory, const std::string& id) {
  const auto record = ReadRecord(directory);
  if (!record || record->at("id") != id) return true;
  RunDirectory run;
  run.path_ = directory;
  if (!AtWorkIn(directory).empty()) return false;
  run.Lock();
  if (HoldsAnswers(directory)) return false;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name != "run.json" && name != ".lock") fs::remove_all(entry.path());
  }
  fs::remove_all(directory / "run.json");
  fs::remove_all(directory);
  return true;
}

void RunDirectory::Update(const Json& members) {
  Change(members);
  WriteFileAtomic(path_ / "run.json", Text());
}

namespace {

// Throws Error if two tasks share a folder. That happens on a file system that does not tell
// upper-case letters from lower-case ones; each task would take the other's files for its own.
void CheckOwn(const fs::path& folder, const std::string& task,
              std::map<std::pair<dev_t, ino_t>, std::string>* owners) {
  struct stat about{};
  if (::stat(folder.c_str(), &about) != 0) ThrowErrno(folder, "stat", errno);
  const auto [owner, fresh] = owners->emplace(std::pair(about.st_dev, about.st_ino), task);
  if (fresh) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: the tasks '{}' and '{}' would share this folder, since this file "
                          "system does not tell "
                          "upper-case letters from lower-case ones",
                          folder.string(), owner->second, task),
              "ask for one of them, or choose an output.dir on another file system");
}

}  // namespace

// One fsync serves all folders of a kind, however many tasks there are.
void MakeTaskFolders(const fs::path& run, const std::vector<std::string>& tasks) {
  for (const char* kind : {"generations", "scores"}) {
    std::map<std::pair<dev_t, ino_t>, std::string> owners;
    MakeDirectories(run / kind);
    for (const std::string& task : tasks) {
      const fs::path folder = run / kind / FolderNameOf(task);
      const int number = MakeFolder(folder);
      if (number != 0) MakeDirectories(folder);  // says what is wrong
      CheckOwn(folder, task, &owners);
    }
    FsyncDirectory(run / kind);
  }
}

}  // namespace evald
