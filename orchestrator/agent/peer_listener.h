#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "http_server/server.h"
#include "orchestrator/agent/chunk_shelf.h"

namespace evald {

struct PeerListenerOptions {
  /// "10.0.0.7:0", "[::]:8700": the IP address and port to listen on; port 0 is any free one. "":
  /// all addresses, and any port
  std::string listen;
  std::string host;               ///< what others call this host, if that is none of its addresses
  uint64_t bytes_per_second = 0;  ///< of what it gives to all together; 0: no limit
  std::filesystem::path folder;   ///< for its certificates
};

/// An HTTPS server from which other agents fetch the checkpoints on this host:
/// `GET /v1/checkpoints/<fingerprint>/<file>` with one range and a token of the checkpoint
/// (PeerToken). 409 says that the range is on its way to this host. It serves from then on, on a
/// thread of its own, until it is destroyed.
class PeerListener {
 public:
  /// Throws Error(kUsage) if it cannot listen there, or if `listen` is no address and port.
  PeerListener(const PeerListenerOptions& options, std::shared_ptr<ChunkShelf> shelf);

  uint16_t port() const { return server_->port(); }
  const std::string& authority() const { return authority_; }  ///< PEM
  const std::string& secret() const { return secret_; }  ///< of its tokens; for the orchestrator

 private:
  std::shared_ptr<ChunkShelf> shelf_;
  const std::string secret_;
  std::string authority_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace evald
