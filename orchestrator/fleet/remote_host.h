#pragma once

#include <functional>
#include <string>

#include "orchestrator/fleet/agent_files.h"
#include "orchestrator/fleet/conversation.h"
#include "orchestrator/fleet/host.h"

namespace evald {

/// The processes of an agent, over a conversation with it. Messages to an agent that cannot be
/// reached arrive when it is back.
class RemoteHost : public Host {
 public:
  /// Beyond it the conversation is lost
  static constexpr size_t kUnacknowledgedBytesMax = size_t{32} << 20;

  /// `stop` carries out StopAll.
  using StopHook = std::function<void(std::chrono::milliseconds grace, std::function<void()> done)>;
  RemoteHost(Events events, StopHook stop) : events_(std::move(events)), stop_(std::move(stop)) {}

  /// From now on `files` follows the messages to and from the agent `instance`, which came with the
  /// token `owner`. `files` outlives this.
  void Grant(AgentFiles* files, const std::string& instance, const std::string& owner);
  /// The same for an agent that reads and writes files itself and gets no permissions. Metric jobs
  /// that are sent to it are taken from other agents.
  void Follow(AgentFiles* files);
  /// Forgets the agent's permissions for files.
  ~RemoteHost() override;

  void Start(const ProcessSpec& spec) override;
  void Send(const std::string& id, const protocol::Message& message) override;
  void Kill(const std::string& id) override;
  void StopAll(std::chrono::milliseconds grace, std::function<void()> done) override {
    stop_(grace, std::move(done));
  }

  /// Passes on a message of a process. False for any other message.
  bool Deliver(const protocol::AgentMessage& message);
  Conversation& conversation() { return conversation_; }

 private:
  Events events_;
  StopHook stop_;
  AgentFiles* files_ = nullptr;
  std::string instance_;
  Conversation conversation_{
      ConversationLimits{.unacknowledged_bytes_max = kUnacknowledgedBytesMax}};
};

}  // namespace evald
