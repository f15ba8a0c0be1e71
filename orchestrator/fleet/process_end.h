#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <functional>

namespace evald {

/// Waits for the end of this process's child `pid` and reaps it. `done` gets the wait status
/// (waitpid(2)), or -1 if somebody else reaped the child; it is called once, by a handler of
/// its own on `context`'s thread. The context's thread never blocks.
///
/// Asio may report a descriptor as readable that is not: its reactor keeps one record a
/// descriptor, and a record whose descriptor was closed with an event still queued is given to the
/// next descriptor. Boost.Process 1.81 trusts such a report and then waits for the child with the
/// loop's thread. This function looks without waiting, and waits again.
///
/// Throws Error(kInfrastructure) if the process has no descriptor left; then nothing is waited for.
void WhenEnded(boost::asio::io_context& context, pid_t pid, std::function<void(int status)> done);

}  // namespace evald
