#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "protocol/agent_messages.h"

namespace evald {

/// One end of a numbered conversation that outlives its connections: what was sent is kept until
/// the other end has acknowledged it, what comes is delivered once and in order. A plain value; no
/// socket, no clock.
///
/// Invariants: numbers of either direction begin at 1 and have no gap; a message is delivered after
/// all before it, and never again; what is not acknowledged can be sent again. What comes too early
/// takes bounded memory: beyond kEarlyMax messages or kEarlyBytesMax it is dropped, and has to be
/// sent again.
class Link {
 public:
  static constexpr size_t kEarlyMax = 4096;
  static constexpr size_t kEarlyBytesMax = size_t{8} << 20;  ///< of their lines

  struct Kept {
    uint64_t number = 0;
    std::string body;  ///< protocol::EncodeBody
  };

  /// Gives the number of a message that is to be sent, and keeps it.
  uint64_t Push(std::string body);
  /// The other end has all messages up to `number`. Later numbers than were given are refused:
  /// false.
  bool Acknowledge(uint64_t number);
  /// What may have been lost, in order.
  const std::deque<Kept>& unacknowledged() const { return kept_; }
  size_t unacknowledged_bytes() const { return kept_bytes_; }

  /// A message came, in a line of `bytes`: gives what can be delivered now. One that came before
  /// gives nothing; one that came too early is held back, or dropped when too many are.
  std::vector<protocol::AgentMessage> Take(uint64_t number, protocol::AgentMessage message,
                                           size_t bytes = 0);
  /// The last number without a gap before it.
  uint64_t received() const { return received_; }
  /// Something is missing between what was delivered and what is held back.
  bool gap() const { return !early_.empty(); }
  size_t early_bytes() const { return early_bytes_; }

  /// A new conversation.
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
