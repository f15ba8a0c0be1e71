#include "orchestrator/service/agent_listener.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <utility>

#include "evald/error.h"
#include "orchestrator/fleet/peer_user.h"
#include "orchestrator/fleet/stream_wire.h"
#include "protocol/channel.h"

namespace evald {

using Unix = boost::asio::local::stream_protocol;

namespace {

constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

AgentListener::AgentListener(Loop* loop, const std::filesystem::path& path,
                             std::function<void(std::shared_ptr<Wire>)> take)
    : path_(path), acceptor_(loop->context()), loop_(loop), take_(std::move(take)) {
  // Left by an orchestrator that was killed; the state folder is ours alone
  ::unlink(path_.c_str());
  try {
    const protocol::SocketName name(path_);
    acceptor_.open();
    acceptor_.bind(Unix::endpoint(name.text()));
    ::chmod(path_.c_str(), 0600);
    acceptor_.listen();
  } catch (const boost::system::system_error& e) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("cannot listen at {}: {}", path_.string(), e.what()));
  }
  Accept();
}

AgentListener::~AgentListener() { ::unlink(path_.c_str()); }

void AgentListener::Accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, Unix::socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    const LoopTurn turn("an agent that connects");
    if (error) return loop_->After(kAcceptPause, [this] { Accept(); });
    if (IsOwnUser(socket.native_handle()))
      take_(std::make_shared<StreamWire<Unix::socket>>(std::move(socket)));
    Accept();
  });
}

}  // namespace evald
