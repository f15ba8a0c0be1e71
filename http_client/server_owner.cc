#include "http_client/server_owner.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <unistd.h>

namespace evald::http_client {
namespace {

std::string WhyNotOf(uid_t uid, uint16_t port) {
  if (uid == ::geteuid() || uid == 0) return "";
  return fmt::format(
      "port {} is held by a process of uid {}, and not by the server that was started", port, uid);
}

}  // namespace

std::string WhyNotOurServer(const TcpEnd& server, const TcpEnd& client) {
  const LookUp found = FindSocket(server, client);
  if (!found.possible) return "";
  if (!found.socket || found.socket->own != server || found.socket->other != client)
    return "the connection has ended";
  if (found.socket->inode != 0) return WhyNotOf(found.socket->uid, server.port);
  const bool waits = found.socket->state == TCP_ESTABLISHED || found.socket->state == TCP_SYN_RECV;
  if (!waits) return "the server has closed the connection";
  const LookUp listener = FindListener(server);
  if (!listener.possible) return "";
  if (!listener.socket) return "nobody listens there any more";
  return WhyNotOf(listener.socket->uid, server.port);
}

}  // namespace evald::http_client
