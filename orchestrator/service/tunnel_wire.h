#pragma once

#include <memory>

#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/wire.h"
#include "orchestrator/http/tunnel.h"

namespace evald {

/// The two ends of an agent's upgraded connection in this process: a Tunnel for the HTTP server's
/// thread, a Wire for the loop's.
struct TunnelEnds {
  std::shared_ptr<http::Tunnel> tunnel;
  std::shared_ptr<Wire> wire;
};

/// Bytes that one connection may have waiting in this process.
inline constexpr size_t kUnreadBytesMax =
    size_t{8} << 20;  ///< received, and not looked at: no more is read until then
inline constexpr size_t kUnsentBytesMax =
    size_t{64} << 20;  ///< to be sent: beyond it the peer does not read, and is cut

/// `loop` outlives both. The wire delivers nothing before its Read(). What a line's handler throws
/// closes the wire, and reaches nobody else.
TunnelEnds MakeTunnel(Loop* loop);

}  // namespace evald
