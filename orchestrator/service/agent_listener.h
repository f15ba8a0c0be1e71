#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <filesystem>
#include <functional>
#include <memory>

#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/wire.h"

namespace evald {

/// The Unix socket for the agent of this host. Removed with the listener. The loop's thread only.
class AgentListener {
 public:
  /// Listens at `path`, in place of a socket that an orchestrator left there. `take` gets the
  /// connections of processes of this user. Throws Error(kInfrastructure) if it cannot listen.
  AgentListener(Loop* loop, const std::filesystem::path& path,
                std::function<void(std::shared_ptr<Wire>)> take);
  ~AgentListener();

 private:
  void Accept();

  std::filesystem::path path_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  Loop* loop_;
  std::function<void(std::shared_ptr<Wire>)> take_;
};

}  // namespace evald
