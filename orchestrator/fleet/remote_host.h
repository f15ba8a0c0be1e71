#pragma once

#include <functional>
#include <string>

#include "orchestrator/fleet/agent_files.h"
#include "orchestrator/fleet/conversation.h"
#include "orchestrator/fleet/host.h"

namespace evald {

/// The processes of an agent, over a conversation with it. What it is told while the agent cannot
/// be reached arrives when it is back.
class RemoteHost : public Host {
 public:
  static constexpr size_t kUnacknowledgedBytesMax = size_t{32}
                                                    << 20;  ///< then the conversation is lost

  /// `stop` carries out StopAll.
  using StopHook = std::function<void(std::chrono::milliseconds grace, std::function<void()> done)>;
  RemoteHost(Events events, StopHook stop) : events_(std::move(events)), stop_(std::move(stop)) {}

  /// From now on `files` follows what the agent called `instance`, which came with the token
  /// `owner`, is told and tells. It outlives this.
  void Grant(AgentFiles* files, const std::string& instance, const std::string& owner);
  /// What the agent may have and give is forgotten.
  ~RemoteHost() override;

  void Start(const ProcessSpec& spec) override;
  void Send(const std::string& id, const protocol::Message& message) override;
  void Kill(const std::string& id) override;
  void StopAll(std::chrono::milliseconds grace, std::function<void()> done) override {
    stop_(grace, std::move(done));
  }

  /// Passes on what is of a process; false for another message.
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
