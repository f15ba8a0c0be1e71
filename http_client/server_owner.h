#pragma once

#include <string>

#include "base/tcp_sockets.h"

namespace evald::http_client {

/// The reason why the server at the other end of a loopback connection is not one that this user or
/// root runs; "" if it is. `client` is this process's end. A connection that no process has
/// accepted yet belongs to the socket that listens there. If the kernel cannot be asked, nobody is
/// refused. Internal to this room.
std::string WhyNotOurServer(const TcpEnd& server, const TcpEnd& client);

}  // namespace evald::http_client
