#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "orchestrator/fleet/loop.h"
#include "orchestrator/service/agent_hub.h"
#include "orchestrator/service/fleet.h"
#include "orchestrator/service/job_tokens.h"

namespace evald {

/// Nodes that compute for one run in the foreground. Their agents come over the network. The loop's
/// thread only.
class RunNodes {
 public:
  struct Support {
    Loop* loop = nullptr;
    Fleet* fleet = nullptr;
    AgentHub* hub = nullptr;
    JobTokens* tokens = nullptr;
    std::string run;               ///< its id
    std::filesystem::path folder;  ///< its folder, for logs and the listener's certificates
  };
  virtual ~RunNodes() = default;

  /// Opens the door for agents, and asks for the nodes. All in `support` outlive this. Throws
  /// Error(kUsage) if it cannot.
  virtual void Start(const Support& support) = 0;
  /// Call it several times a second.
  virtual void Tick() = 0;
  /// What the run waits for while no node is there; "" if nothing is asked for.
  virtual std::string WaitsFor() const = 0;
  /// Whether nodes are expected that have not come yet.
  virtual bool MoreMayCome() const = 0;
  /// Why no node is to be hoped for; "" if there is hope.
  virtual std::string Hopeless() const = 0;
  /// Gives the nodes back, then calls `done`.
  virtual void Stop(std::function<void()> done) = 0;
  /// A person waits for the end: Stop waits for no launcher that does not answer.
  virtual void Hurry() = 0;
  /// Lets go of all in `support`, whether Stop was called or not. May block for a second.
  virtual void Close() = 0;
};

}  // namespace evald
