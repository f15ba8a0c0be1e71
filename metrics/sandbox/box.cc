#include "metrics/sandbox/box.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::sandbox {
namespace {

constexpr size_t kSaidBytes = 64 << 10;
constexpr int kEndGraceMs = 200;
constexpr int64_t kLookMs =
    100;  // how often a conversation that may be stopped looks whether it is

}  // namespace

Box::Box(std::unique_ptr<BoxProcess> process, Words words)
    : process_(std::move(process)), words_(std::move(words)) {
  for (const int fd : {process_->control(), process_->errors()}) fcntl(fd, F_SETFL, O_NONBLOCK);
}

void Box::ReadErrors() {
  char piece[16 << 10];
  for (;;) {
    const ssize_t got = read(process_->errors(), piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    said_.append(piece, static_cast<size_t>(got));
    if (said_.size() > 2 * kSaidBytes) said_.erase(0, said_.size() - kSaidBytes);
  }
}

/// Takes what has come. False at the end of the stream.
bool Box::ReadControl() {
  char piece[64 << 10];
  const ssize_t got = recv(process_->control(), piece, sizeof(piece), MSG_DONTWAIT);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  received_.append(piece, static_cast<size_t>(got));
  return got > 0;
}

/// Waits for the control socket, and meanwhile reads what the program prints.
void Box::Await(short events, int64_t deadline_us) {
  const int64_t most_ms = stopped_ ? kLookMs : 1000;
  for (;;) {
    const int64_t left_us = deadline_us - MonotonicMicros();
    if (deadline_us != 0 && left_us <= 0) {
      process_->Stop(0);
      throw Error(ErrorKind::kInput, "takes longer than task code may", "see docs/task-code.md");
    }
    if (stopped_ && stopped_()) {
      process_->Stop(0);
      throw Error(ErrorKind::kInfrastructure, "the task's code was stopped");
    }
    const int wait_ms =
        deadline_us == 0 && !stopped_
            ? -1
            : static_cast<int>(deadline_us == 0 ? most_ms : std::min(left_us / 1000 + 1, most_ms));
    pollfd ready[2] = {{process_->control(), events, 0}, {process_->errors(), POLLIN, 0}};
    if (poll(ready, 2, wait_ms) < 0) continue;
    if ((ready[1].revents & POLLIN) != 0) ReadErrors();
    if (ready[0].revents != 0) return;
    if ((ready[1].revents & POLLHUP) != 0) usleep(1000);  // closed by the program
  }
}

void Box::Send(std::string_view line, int64_t deadline_us) {
  SendBytes(std::string(line) + '\n', deadline_us);
}

void Box::SendBytes(std::string_view bytes, int64_t deadline_us) {
  size_t done = 0;
  while (done < bytes.size()) {
    Await(POLLOUT, deadline_us);
    const ssize_t sent = send(process_->control(), bytes.data() + done, bytes.size() - done,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) ThrowEnded();
    if (sent > 0) done += static_cast<size_t>(sent);
  }
}

std::string Box::Receive(size_t bytes_max, int64_t deadline_us) {
  for (size_t seen = 0;;) {
    const size_t end = received_.find('\n', seen);
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    seen = received_.size();
    if (seen > bytes_max) {
      throw Error(ErrorKind::kInput,
                  words_.who + " gives an answer of more than " + HumanBytes(bytes_max),
                  "let the function give smaller values");
    }
    Await(POLLIN, deadline_us);
    if (!ReadControl()) ThrowEnded();
  }
}

std::string Box::TakeSaid() {
  ReadErrors();
  std::string said = std::move(said_);
  said_.clear();
  if (said.size() > kSaidBytes) said.erase(0, said.size() - kSaidBytes);
  return ReplaceInvalidUtf8(said);
}

void Box::ThrowEnded() {
  constexpr size_t kShownBytes = 1000;
  const int status = process_->Stop(kEndGraceMs);
  std::string why = "ended";
  if (status >= 0 && WIFSIGNALED(status)) {
    why = std::string("was ended by signal ") + strsignal(WTERMSIG(status));
  } else if (status >= 0 && WIFEXITED(status)) {
    why = "ended with status " + std::to_string(WEXITSTATUS(status));
  }
  const std::string said(Trim(TakeSaid()));
  const std::string last = said.substr(said.rfind('\n') + 1);
  throw Error(ErrorKind::kInput,
              words_.who + " " + why +
                  (last.empty() ? "" : ": " + PrintableLine(Shortened(last, kShownBytes))),
              words_.remedy);
}

}  // namespace evald::sandbox
