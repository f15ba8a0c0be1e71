#include "metrics/sandbox/alone.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::sandbox {

namespace fs = std::filesystem;

/// The file "ends", mapped: the time (MonotonicMicros) until which the turns taken so far may last.
/// It only grows.
struct TurnFolder::Ends {
  explicit Ends(int fd) {
    void* const page = mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) ThrowErrno("ends", "mapping", errno);
    word = static_cast<int64_t*>(page);
  }
  ~Ends() { munmap(word, sizeof(int64_t)); }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  int64_t Get() const { return std::atomic_ref<int64_t>(*word).load(); }
  void Raise(int64_t until_us) {
    std::atomic_ref<int64_t> until(*word);
    int64_t known = until.load();
    while (known < until_us && !until.compare_exchange_weak(known, until_us)) {
    }
  }

  int64_t* word;
};

namespace {

constexpr useconds_t kPollUsMax = 20'000;

/// Why the folder is not this user's alone; "" when it is, and `folder` is then open.
std::string OpenOwn(const fs::path& path, UniqueFd* folder) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return std::strerror(errno);
  UniqueFd opened(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return std::strerror(errno);
  struct stat info = {};
  if (fstat(opened.get(), &info) != 0) return std::strerror(errno);
  if (info.st_uid != geteuid()) {
    return "it belongs to user " + std::to_string(info.st_uid) + ", expected " +
           std::to_string(geteuid());
  }
  if ((info.st_mode & 077) != 0) return "others may enter it, expected mode 0700";
  *folder = std::move(opened);
  return "";
}

/// Opens the file "ends", whose page is written here: a full tmpfs shall fail this call and not, by a
/// signal, a later one. "" or why it cannot be had.
std::string OpenEnds(const UniqueFd& folder, UniqueFd* ends) {
  UniqueFd file(openat(folder.get(), "ends", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat info = {};
  if (!file || fstat(file.get(), &info) != 0) return std::strerror(errno);
  const int64_t never = 0;
  if (info.st_size < static_cast<off_t>(sizeof(never)) &&
      pwrite(file.get(), &never, sizeof(never), 0) != static_cast<ssize_t>(sizeof(never))) {
    return std::strerror(errno);
  }
  *ends = std::move(file);
  return "";
}

UniqueFd OpenFile(const UniqueFd& folder, const fs::path& path, const char* name) {
  UniqueFd file(openat(folder.get(), name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) ThrowErrno(path / name, "opening", errno);
  return file;
}

}  // namespace

TurnFolder::TurnFolder(const std::vector<fs::path>& candidates, int64_t patience_us)
    : patience_us_(patience_us) {
  std::vector<std::string> refused;
  for (const fs::path& path : candidates) {
    UniqueFd folder;
    UniqueFd ends;
    std::string why = OpenOwn(path, &folder);
    if (why.empty()) why = OpenEnds(folder, &ends);
    if (why.empty()) {
      path_ = path;
      folder_ = std::move(folder);
      ends_ = std::make_unique<Ends>(ends.get());
      return;
    }
    refused.push_back(path.string() + " (" + why + ")");
  }
  log::Warn("no folder for the turns of programs can be had: {}. A program that sleeps is judged while others run",
            Join(refused, ", "));
}

TurnFolder::~TurnFolder() = default;

std::vector<fs::path> DefaultTurnFolders() {
  const std::string uid = std::to_string(geteuid());
  return {"/dev/shm/evald-turns-" + uid, "/run/user/" + uid + "/evald-turns", "/tmp/evald-turns-" + uid};
}

HostTurn::HostTurn(const TurnFolder& folder, bool alone, int64_t longest_us) {
  if (!folder.usable()) return;
  const auto lock = [&](const char* name) {
    UniqueFd file = OpenFile(folder.folder_, folder.path_, name);
    const int64_t begun = MonotonicMicros();
    useconds_t pause_us = 50;
    while (flock(file.get(), (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) ThrowErrno(folder.path_ / name, "locking", errno);
      if (MonotonicMicros() > std::max(begun, folder.ends_->Get()) + folder.patience_us_) {
        throw Error(ErrorKind::kInfrastructure,
                    "waiting for a turn to run a program: " + (folder.path_ / name).string() +
                        " is still locked by another process, expected its turn to have ended by now",
                    "'lslocks' names the process; let it go on if it is stopped, or end it");
      }
      usleep(pause_us);
      pause_us = std::min(pause_us * 2, kPollUsMax);
    }
    return file;
  };
  gate_ = lock("gate");
  turn_ = lock("turn");
  folder.ends_->Raise(MonotonicMicros() + longest_us);
  if (!alone) gate_.reset();
}

}  // namespace evald::sandbox
