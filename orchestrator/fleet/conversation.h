#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "orchestrator/fleet/link.h"
#include "orchestrator/fleet/wire.h"

namespace evald {

/// How long an end of a conversation waits before it gives up a connection.
struct ConversationLimits {
  int64_t silence_max_us = 15'000'000;  ///< without any line
  int64_t gap_max_us = 3'000'000;       ///< for a missing message that later ones have overtaken
  /// Bytes sent and not acknowledged, with or without a connection. Beyond this the conversation is
  /// lost.
  size_t unacknowledged_bytes_max = SIZE_MAX;
};

/// A Link and its present connection. Numbers and acknowledges messages, sends again the messages
/// that were lost with a connection, and delivers received messages once and in order. Loop thread
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

  /// Begins anew: earlier messages in both directions do not count. Cuts the connection.
  void Reset();
  /// Goes on over `wire`, after its hellos. The other end has received messages up to
  /// `peer_received`; later ones are sent again. Cuts the connection before. False, and no change,
  /// if so many messages were never sent.
  bool Attach(std::shared_ptr<Wire> wire, uint64_t peer_received, Handlers handlers, int64_t now);
  void Cut(const std::string& why);
  bool attached() const { return wire_ != nullptr; }
  /// Whether the other end acknowledged too little of its messages. No messages are kept for it any
  /// more; only Reset helps.
  bool lost() const { return lost_; }

  /// Sends now or when there is a connection again.
  void Send(const protocol::AgentMessage& message);
  /// Sends without a number, and only over a present connection: for messages that are worthless
  /// later.
  void SendLoose(const protocol::AgentMessage& message);
  /// Cuts a connection that is silent or has lost a message. Call it several times a second.
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
