#pragma once

#include <memory>

#include "http_server/tunnel.h"
#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/wire.h"

namespace evald {

/// The two ends of an agent's upgraded connection in this process: a Tunnel for the HTTP server's
/// thread, a Wire for the loop's.
struct TunnelEnds {
  std::shared_ptr<http::Tunnel> tunnel;
  std::shared_ptr<Wire> wire;
};

/// Bytes that one connection may have waiting in this process.
/// Received and not processed yet: beyond it nothing more is read
inline constexpr size_t kUnreadBytesMax = size_t{8} << 20;
/// To be sent: beyond it the connection is cut, since the peer does not read
inline constexpr size_t kUnsentBytesMax = size_t{64} << 20;

/// `loop` outlives both ends. The wire delivers nothing before its Read(). An exception of a line's
/// handler closes the wire and goes no further.
TunnelEnds MakeTunnel(Loop* loop);

}  // namespace evald
