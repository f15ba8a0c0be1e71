#include "orchestrator/watch/watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kGap{100};  // the shortest time between two looks
// While a checkpoint is coming to rest, looks are closer, but not closer than this
constexpr double kSoonSeconds = 1;

double Now() { return static_cast<double>(MonotonicMicros()) / 1e6; }

}  // namespace

Watcher::Watcher(WatchOptions options, Actions actions)
    : options_(std::move(options)),
      actions_(std::move(actions)),
      scan_(options_.checkpoints, options_.marker, options_.settle_s, options_.roots) {
  if (!options_.may_be_missing && !options_.roots.HasFolder(options_.checkpoints)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: is not a folder", options_.checkpoints.string()),
                "name the folder that a training run writes its checkpoints into");
  }
  LoadMemory();
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  inotify_fd_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

Watcher::~Watcher() {
  Stop();
  if (wake_fd_ >= 0) ::close(wake_fd_);
  if (inotify_fd_ >= 0) ::close(inotify_fd_);
}

void Watcher::Start() {
  thread_ = std::thread([this] { Main(); });
}

void Watcher::End() {
  ending_ = true;
  Wake();
}

void Watcher::Stop() {
  End();
  if (thread_.joinable()) thread_.join();
}

void Watcher::Wake() {
  const uint64_t one = 1;
  if (::write(wake_fd_, &one, sizeof one) < 0) return;  // the counter is full: it is awake already
}

void Watcher::Main() {
  if (inotify_fd_ >= 0) {  // on this thread, since the folder may be slow to find
    ::inotify_add_watch(inotify_fd_, options_.checkpoints.c_str(),
                        IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  }
  while (!ending_) {
    try {
      Look();
      Trouble("");
    } catch (const Error& e) {
      Trouble(e.what());  // an absent file system may come back
    }
    if (!ending_) Wait();
  }
  ended_ = true;
}

void Watcher::Trouble(const std::string& why) {
  if (why != trouble_) actions_.trouble(why);
  trouble_ = why;
}

// Waits until a checkpoint may have appeared, or until the next look is due: sooner while a
// checkpoint is coming to rest.
void Watcher::Wait() {
  std::this_thread::sleep_for(kGap);
  const double soon = std::max(kSoonSeconds, options_.settle_s / 2);
  const double seconds = scan_.settling() ? std::min(options_.poll_s, soon) : options_.poll_s;
  pollfd waits[2] = {{wake_fd_, POLLIN, 0}, {inotify_fd_, POLLIN, 0}};
  ::poll(waits, 2, static_cast<int>(seconds * 1000));
  char forget[4096];
  for (const pollfd& wait : waits) {
    while (wait.fd >= 0 && ::read(wait.fd, forget, sizeof forget) > 0) {
    }
  }
}

std::vector<std::string> Watcher::Look() {
  ForgetRunsThatAreOver();
  std::vector<FoundCheckpoint> found;
  {
    const std::shared_ptr<void> turn =
        options_.turns != nullptr ? options_.turns->Wait(options_.user, ending_) : nullptr;
    if (!ending_) found = scan_.Scan(Now(), &ending_);
  }
  if (ending_) return {};
  const WatchDecision decision =
      DecideWatch(options_.which, options_.every, found, memory_, memory_.waiting.size());
  undecided_ = false;
  std::vector<std::string> runs;
  for (const FoundCheckpoint& checkpoint : decision.pass_over) {
    Remember(checkpoint);
    actions_.tell({checkpoint.name, "passed-over", "", ""});
  }
  for (const FoundCheckpoint& checkpoint : decision.submit) {
    Submit(checkpoint, &runs);
    if (undecided_ || ending_) break;  // so that the order is kept
  }
  return runs;
}

// The key makes a repeated submission, after the memory was lost, the same as the first.
void Watcher::Submit(const FoundCheckpoint& checkpoint, std::vector<std::string>* runs) {
  const std::string key = "watch-" + HashHex(options_.scope + "\n" + checkpoint.path.string() +
                                             " " + MemoryKey(checkpoint));
  try {
    const std::string run = actions_.submit(checkpoint, key);
    memory_.waiting.push_back(run);
    Remember(checkpoint);
    actions_.tell({checkpoint.name, "submitted", run, ""});
    runs->push_back(run);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput && e.kind() != ErrorKind::kUsage) {
      undecided_ = true;
      actions_.tell({checkpoint.name, "postponed", "", e.what()});
      return;
    }
    Remember(checkpoint);
    actions_.tell({checkpoint.name, "refused", "", e.what()});
  }
}

bool Watcher::settled() {
  ForgetRunsThatAreOver();
  return memory_.waiting.empty() && !undecided_ && !scan_.unsettled();
}

void Watcher::Remember(const FoundCheckpoint& checkpoint) {
  memory_.decided.insert(MemoryKey(checkpoint));
  ++memory_.arrived;
  SaveMemory();
}

// Forgets runs that are over. The file is written with the next decision: a forgotten entry costs
// only a look.
void Watcher::ForgetRunsThatAreOver() {
  std::erase_if(memory_.waiting, [this](const std::string& run) { return actions_.is_over(run); });
}

// A damaged file does not stop the service: submitted checkpoints are found again by their keys.
void Watcher::LoadMemory() {
  if (options_.memory.empty() || !fs::exists(options_.memory)) return;
  const std::string where = options_.memory.string();
  try {
    const Json json = ParseJson(ReadFile(options_.memory), where);
    WatchMemory memory;
    memory.arrived = Field<int64_t>(json, "arrived", where);
    for (const std::string& key : Field<std::vector<std::string>>(json, "decided", where))
      memory.decided.insert(key);
    memory.waiting = FieldOr<std::vector<std::string>>(json, "waiting", {}, where);
    memory_ = std::move(memory);
  } catch (const Error& e) {
    log::Warn("{}; the watch of {} decides anew", e.what(), options_.checkpoints.string());
  }
}

void Watcher::SaveMemory() {
  const std::lock_guard lock(file_mutex_);
  if (options_.memory.empty() || forgotten_) return;
  MakeDirectories(options_.memory.parent_path());
  const Json json = {
      {"arrived", memory_.arrived}, {"decided", memory_.decided}, {"waiting", memory_.waiting}};
  WriteFileAtomic(options_.memory, json.dump(1) + "\n");
}

void Watcher::Forget() {
  const std::lock_guard lock(file_mutex_);
  forgotten_ = true;
  std::error_code ignored;
  fs::remove(options_.memory, ignored);
}

}  // namespace evald
