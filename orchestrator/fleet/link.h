#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "protocol/agent_messages.h"

namespace evald {

/// One end of a numbered conversation that outlives its connections. A sent message is kept until
/// the other end has acknowledged it. A received message is delivered once and in order. A plain
/// value; no socket, no clock.
///
/// Invariants: numbers of either direction begin at 1 and have no gap. A message is delivered after
/// all before it, and never again. A message that is not acknowledged can be sent again. Messages
/// that come too early take bounded memory: beyond kEarlyMax messages or kEarlyBytesMax they are
/// dropped and must be sent again.
class Link {
 public:
  static constexpr size_t kEarlyMax = 4096;
  static constexpr size_t kEarlyBytesMax = size_t{8} << 20;  ///< of their lines

  struct Kept {
    uint64_t number = 0;
    std::string body;  ///< protocol::EncodeBody
  };

  /// Keeps a message that is to be sent, and returns its number.
  uint64_t Push(std::string body);
  /// The other end has all messages up to `number`. False if so many were never sent.
  bool Acknowledge(uint64_t number);
  /// Messages that may have been lost, in order.
  const std::deque<Kept>& unacknowledged() const { return kept_; }
  size_t unacknowledged_bytes() const { return kept_bytes_; }

  /// A message came, in a line of `bytes`. Returns the messages that can be delivered now: none if
  /// it came before; none if it came too early, when it is held back, or dropped if too many are.
  std::vector<protocol::AgentMessage> Take(uint64_t number, protocol::AgentMessage message,
                                           size_t bytes = 0);
  /// The last number without a gap before it.
  uint64_t received() const { return received_; }
  /// Whether a message is missing between the delivered ones and those held back.
  bool gap() const { return !early_.empty(); }
  size_t early_bytes() const { return early_bytes_; }

  /// Begins a new conversation.
  void Reset() { *this = Link(); }

 private:
  uint64_t sent_ = 0;
  std::deque<Kept> kept_;
  uint64_t received_ = 0;
  struct Early {
    protocol::AgentMessage message;
    size_t bytes = 0;
  };
  std::map<uint64_t, Early>::iterator DropEarly(std::map<uint64_t, Early>::iterator early);

  std::map<uint64_t, Early> early_;
  size_t early_bytes_ = 0;
  size_t kept_bytes_ = 0;
};

}  // namespace evald
