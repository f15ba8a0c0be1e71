#include "metrics/sandbox/alone.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "base/log.h"
#include "evald/error.h"

namespace evald::sandbox {
namespace {

constexpr const char* kGatePath = "/proc";
constexpr const char* kTurnPath = "/dev";
constexpr int64_t kSayUs = 600'000'000;
constexpr useconds_t kPollUsMax = 20'000;

UniqueFd Lock(const char* path, int kind) {
  UniqueFd folder(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) ThrowErrno(path, "opening", errno);
  int64_t say_at = MonotonicMicros() + kSayUs;
  useconds_t pause_us = 50;
  while (flock(folder.get(), kind | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) ThrowErrno(path, "locking", errno);
    if (MonotonicMicros() > say_at) {
      log::Warn(
          "still waiting for a turn to run a program: see who holds a lock on {} with "
          "'lslocks'",
          path);
      say_at += kSayUs;
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
