#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/fleet/host.h"
#include "protocol/agent_messages.h"

namespace evald {

/// An agent's knowledge of its processes. It suffices to introduce them to another orchestrator,
/// and to tell work for the present orchestrator from work for an earlier one. A plain value.
class ProcessBook {
 public:
  using Trial = std::pair<int64_t, int>;  ///< with its attempt

  void Started(const ProcessSpec& spec);
  void Ended(const std::string& id);
  bool Knows(const std::string& id) const { return processes_.count(id) > 0; }

  /// A message is on its way to a process.
  void Sent(const std::string& id, const protocol::Message& message);
  /// A message came from a process. Returns whether it concerns the present orchestrator.
  bool Received(const std::string& id, const protocol::Message& message);

  /// A message that Sent was told of will not arrive.
  void Undelivered(const std::string& id, const protocol::Message& message);

  /// Another orchestrator is there: leases of the earlier one are void. Returns the revokes to
  /// send.
  std::vector<std::pair<std::string, protocol::Revoke>> BeginAnew();
  /// Processes that have not yet confirmed such a revoke.
  std::vector<std::string> NotAtRest() const;
  /// The processes for AgentReady.
  std::vector<protocol::HeldProcess> Processes() const;
  /// Whether no process holds a trial or a job.
  bool idle() const;
  bool empty() const { return processes_.empty(); }
  std::vector<std::string> ids() const;

 private:
  struct Entry {
    protocol::HeldProcess about;
    std::set<Trial> trials, void_trials;
    std::set<int64_t> jobs, void_jobs;
  };
  static bool ReceivedOfTrial(Entry* entry, const Trial& trial, bool ends);
  static bool ReceivedOfJob(Entry* entry, int64_t job);

  std::map<std::string, Entry> processes_;
};

}  // namespace evald
