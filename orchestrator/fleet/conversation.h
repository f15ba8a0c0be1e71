#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "orchestrator/fleet/link.h"
#include "orchestrator/fleet/wire.h"

namespace evald {

/// How long an end of a conversation waits before it gives a connection up.
struct ConversationLimits {
  int64_t silence_max_us = 15'000'000;  ///< without any line
  int64_t gap_max_us = 3'000'000;       ///< for a message that others have overtaken
  /// Of what was sent and is not acknowledged, with a connection or without: beyond it the
  /// conversation is lost.
  size_t unacknowledged_bytes_max = SIZE_MAX;
};

/// A Link and the connection it is carried by at the moment: numbers and acknowledges what is sent,
/// sends again what a connection took with it, delivers what comes once and in order. Loop thread
/// only.
class Conversation {
 public:
  struct Handlers {
    std::function<void(const protocol::AgentMessage&)> deliver;
    std::function<void(const std::string& why)> cut;  ///< the connection is gone
  };
  explicit Conversation(ConversationLimits limits = {}) : limits_(limits) {}
  ~Conversation();
  Conversation(const Conversation&) = delete;

  /// Begins anew: nothing that was sent or received before counts. Cuts the connection.
  void Reset();
  /// Goes on over `wire`, whose beginning is done. The other end has received up to
  /// `peer_received`; what came later is sent again. Cuts the connection before. False, and nothing
  /// is changed, when the other end cannot have received so much.
  bool Attach(std::shared_ptr<Wire> wire, uint64_t peer_received, Handlers handlers, int64_t now);
  void Cut(const std::string& why);
  bool attached() const { return wire_ != nullptr; }
  /// The other end acknowledged too little of what it was sent: nothing is kept for it any more,
  /// and only Reset helps.
  bool lost() const { return lost_; }

  /// Sends now or when there is a connection again.
  void Send(const protocol::AgentMessage& message);
  /// Sends without a number, and only if there is a connection: for what is worth nothing later.
  void SendLoose(const protocol::AgentMessage& message);
  /// Cuts a connection that is silent or has lost something. To be called several times a second.
  void Tick(int64_t now);

  uint64_t received() const { return link_.received(); }
  size_t waiting() const { return link_.unacknowledged().size(); }

 private:
  void OnLine(const std::string& line);

  ConversationLimits limits_;
  Link link_;
  std::shared_ptr<Wire> wire_;
  Handlers handlers_;
  int64_t heard_us_ = 0;
  int64_t gap_since_us_ = 0;  ///< 0: there is none
  bool lost_ = false;
};

}  // namespace evald
