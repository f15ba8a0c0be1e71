#include "metrics/sandbox/alone.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "evald/error.h"

namespace evald::sandbox {
namespace {

constexpr const char* kGatePath = "/proc";
constexpr const char* kTurnPath = "/dev";
constexpr int64_t kWaitUs = 600'000'000;
constexpr useconds_t kPollUsMax = 20'000;

UniqueFd Lock(const char* path, int kind) {
  UniqueFd folder(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) ThrowErrno(path, "opening", errno);
  const int64_t deadline = MonotonicMicros() + kWaitUs;
  useconds_t pause_us = 50;
  while (flock(folder.get(), kind | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) ThrowErrno(path, "locking", errno);
    if (MonotonicMicros() > deadline) {
      throw Error(
          ErrorKind::kInfrastructure,
          std::string("no turn to run a program for 10 minutes: a process holds a lock on ") + path,
          "see which one with 'lslocks'");
    }
    usleep(pause_us);
    pause_us = pause_us * 2 < kPollUsMax ? pause_us * 2 : kPollUsMax;
  }
  return folder;
}

}  // namespace

HostTurn::HostTurn(bool alone) {
  gate_ = Lock(kGatePath, alone ? LOCK_EX : LOCK_SH);
  turn_ = Lock(kTurnPath, alone ? LOCK_EX : LOCK_SH);
  if (!alone) gate_.reset();
}

}  // namespace evald::sandbox
