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

/// `loop` outlives both. The wire delivers nothing before its Read().
TunnelEnds MakeTunnel(Loop* loop);

}  // namespace evald
