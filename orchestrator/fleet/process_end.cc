#include "orchestrator/fleet/process_end.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/file.h"

namespace evald {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

struct Wait {
  Descriptor pidfd;
  pid_t pid;
  std::function<void(int)> done;
};

void WaitAndLook(const std::shared_ptr<Wait>& wait) {
  wait->pidfd.async_wait(Descriptor::wait_read, [wait](const boost::system::error_code& error) {
    if (error == boost::asio::error::operation_aborted) return;
    int status = 0;
    const pid_t ended = ::waitpid(wait->pid, &status, WNOHANG);
    if (ended == 0) return WaitAndLook(wait);
    wait->done(ended < 0 ? -1 : status);
  });
}

}  // namespace

void WhenEnded(boost::asio::io_context& context, pid_t pid, std::function<void(int)> done) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) ThrowErrno(fmt::format("process {}", pid), "open a descriptor of", errno);
  const auto wait = std::make_shared<Wait>(Descriptor(context), pid, std::move(done));
  wait->pidfd.assign(pidfd.get());
  static_cast<void>(pidfd.release());
  WaitAndLook(wait);
}

}  // namespace evald
