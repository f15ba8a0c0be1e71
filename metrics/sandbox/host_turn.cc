#include "metrics/sandbox/host_turn.h"

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

namespace {

/// Times that the processes of one user share, as MonotonicMicros.
struct Times {
  int64_t turns_end;    ///< the latest end of the turns taken so far; only grows
  int64_t alone_again;  ///< when the next exclusive turn may begin
  int64_t next_place;   ///< the next place in the queue of exclusive turns
};

}  // namespace

/// The file "times", mapped.
struct TurnFolder::Page {
  explicit Page(int fd) {
    void* const page = mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) ThrowErrno("times", "mapping", errno);
    times = static_cast<Times*>(page);
  }
  ~Page() { munmap(times, sizeof(Times)); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  static int64_t Get(int64_t& word) { return std::atomic_ref<int64_t>(word).load(); }
  static void Raise(int64_t& word, int64_t value) {
    std::atomic_ref<int64_t> shared(word);
    int64_t known = shared.load();
    while (known < value && !shared.compare_exchange_weak(known, value)) {
    }
  }
  int64_t TakePlace() { return std::atomic_ref<int64_t>(times->next_place).fetch_add(1); }

  Times* times;
};

namespace {

constexpr useconds_t kPollUsMax = 20'000;

/// Why the folder does not belong to this user alone; "" if it does, and then `folder` is open.
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

/// Opens the file "times" and writes its page: a full tmpfs must fail this call, and not a later
/// access by a signal. Returns "", or why the file cannot be used.
std::string OpenTimes(const UniqueFd& folder, UniqueFd* times) {
  UniqueFd file(openat(folder.get(), "times", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat info = {};
  if (!file || fstat(file.get(), &info) != 0) return std::strerror(errno);
  const Times none = {};
  if (info.st_size < static_cast<off_t>(sizeof(none)) &&
      pwrite(file.get(), &none, sizeof(none), 0) != static_cast<ssize_t>(sizeof(none))) {
    return std::strerror(errno);
  }
  *times = std::move(file);
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
    UniqueFd times;
    std::string why = OpenOwn(path, &folder);
    if (why.empty()) why = OpenTimes(folder, &times);
    if (why.empty()) {
      path_ = path;
      folder_ = std::move(folder);
      page_ = std::make_unique<Page>(times.get());
      return;
    }
    refused.push_back(path.string() + " (" + why + ")");
  }
  log::Warn(
      "no folder for the turns of programs can be had: {}. A program that must run alone is judged "
      "while others run",
      Join(refused, ", "));
}

TurnFolder::~TurnFolder() = default;

std::vector<fs::path> DefaultTurnFolders() {
  const std::string uid = std::to_string(geteuid());
  return {"/dev/shm/evald-turns-" + uid, "/run/user/" + uid + "/evald-turns",
          "/tmp/evald-turns-" + uid};
}

HostTurn::HostTurn(const TurnFolder& folder, bool alone, int64_t longest_us) : folder_(folder) {
  if (!folder.usable()) return;
  Times& times = *folder.page_->times;
  if (alone) place_ = AwaitOwnPlace(longest_us);
  gate_ = Lock("gate", alone ? LOCK_EX : LOCK_SH);
  if (alone) closed_us_ = MonotonicMicros();
  turn_ = Lock("turn", alone ? LOCK_EX : LOCK_SH);
  TurnFolder::Page::Raise(times.turns_end, MonotonicMicros() + longest_us);
  if (!alone) gate_.reset();
}

HostTurn::~HostTurn() {
  if (closed_us_ == 0) return;
  const int64_t now_us = MonotonicMicros();
  TurnFolder::Page::Raise(folder_.page_->times->alone_again, now_us + (now_us - closed_us_));
}

/// Waits until no one is before this object in the queue and shared turns have had their time. The
/// place is held until this turn is over, so that the next in the queue sees when that is.
UniqueFd HostTurn::AwaitOwnPlace(int64_t longest_us) const {
  UniqueFd queue = OpenFile(folder_.folder_, folder_.path_, "queue");
  Times& times = *folder_.page_->times;
  const int64_t number = folder_.page_->TakePlace();
  struct flock own = {};
  own.l_type = F_WRLCK;
  own.l_whence = SEEK_SET;
  own.l_start = number;
  own.l_len = 1;
  if (fcntl(queue.get(), F_OFD_SETLK, &own) != 0)
    ThrowErrno(folder_.path_ / "queue", "locking", errno);
  int64_t first_us = 0;  // since when no one is before this object
  for (const int64_t begun_us = MonotonicMicros();; usleep(kPollUsMax)) {
    struct flock before = own;
    before.l_start = 0;
    before.l_len = number;  // 0 would mean the whole file
    if (number > 0 && fcntl(queue.get(), F_OFD_GETLK, &before) != 0) {
      ThrowErrno(folder_.path_ / "queue", "asking for locks of", errno);
    }
    const int64_t now_us = MonotonicMicros();
    if (first_us == 0 && (number == 0 || before.l_type == F_UNLCK)) first_us = now_us;
    // A folder in /tmp may hold times of an earlier boot's clock, so no pause is longer than a
    // turn.
    const int64_t again_us =
        std::min(TurnFolder::Page::Get(times.alone_again), first_us + longest_us);
    if (first_us != 0 && now_us >= again_us) return queue;
    CheckPatience("queue", begun_us);
  }
}

UniqueFd HostTurn::Lock(const char* name, int operation) const {
  UniqueFd file = OpenFile(folder_.folder_, folder_.path_, name);
  const int64_t begun_us = MonotonicMicros();
  useconds_t pause_us = 50;
  while (flock(file.get(), operation | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) ThrowErrno(folder_.path_ / name, "locking", errno);
    CheckPatience(name, begun_us);
    usleep(pause_us);
    pause_us = std::min(pause_us * 2, kPollUsMax);
  }
  return file;
}

/// Throws if all turns taken since then have ended, or should have, and this one has not come.
void HostTurn::CheckPatience(const char* name, int64_t begun_us) const {
  Times& times = *folder_.page_->times;
  const int64_t expected_us = std::max(
      {begun_us, TurnFolder::Page::Get(times.turns_end), TurnFolder::Page::Get(times.alone_again)});
  if (MonotonicMicros() <= expected_us + folder_.patience_us_) return;
  throw Error(ErrorKind::kInfrastructure,
              "waiting for a turn to run a program: " + (folder_.path_ / name).string() +
                  " is still locked by another process, expected its turn to have ended by now",
              "'lslocks' names the process; let it go on if it is stopped, or end it");
}

}  // namespace evald::sandbox
