#include "worker/command/output_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "evald/error.h"

namespace evald::command {
namespace {

constexpr size_t kTailBytes = size_t{64} << 10;
constexpr int kPollMilliseconds = 100;

void WriteAll(int fd, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t wrote = ::write(fd, bytes, count);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    bytes += wrote;
    count -= static_cast<size_t>(wrote);
  }
}

}  // namespace

OutputLog::OutputLog(UniqueFd pipe, const std::filesystem::path& log, uint64_t bytes_max)
    : pipe_(std::move(pipe)),
      log_(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)),
      left_(bytes_max) {
  if (!log_) ThrowErrno(log, "open", errno);
  reader_ = std::thread([this] { Read(); });
}

OutputLog::~OutputLog() { Finish(); }

void OutputLog::Finish() {
  stopping_ = true;
  if (reader_.joinable()) reader_.join();
}

void OutputLog::Read() {
  char bytes[65536];
  while (true) {
    pollfd entry{pipe_.get(), POLLIN, 0};
    const bool last = stopping_;
    if (::poll(&entry, 1, last ? 0 : kPollMilliseconds) <= 0) {
      if (last) break;
      continue;
    }
    const ssize_t got = ::read(pipe_.get(), bytes, sizeof bytes);
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (got > 0) Take(bytes, static_cast<size_t>(got));
  }
  WriteTail();
}

void OutputLog::Take(const char* bytes, size_t count) {
  const size_t written = static_cast<size_t>(std::min<uint64_t>(left_, count));
  WriteAll(log_.get(), bytes, written);
  left_ -= written;
  left_out_ += count - written;
  const std::lock_guard lock(mutex_);
  tail_.append(bytes, count);
  if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
}

void OutputLog::WriteTail() {
  if (left_out_ == 0) return;
  const std::lock_guard lock(mutex_);
  const size_t shown = static_cast<size_t>(std::min<uint64_t>(left_out_, tail_.size()));
  const std::string note =
      fmt::format("\n… evald: {} of output are left out here\n", HumanBytes(left_out_ - shown));
  WriteAll(log_.get(), note.data(), note.size());
  WriteAll(log_.get(), tail_.data() + tail_.size() - shown, shown);
}

std::string OutputLog::Tail() const {
  const std::lock_guard lock(mutex_);
  return ReplaceInvalidUtf8(tail_);
}

}  // namespace evald::command
