#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/wire.h"

namespace evald {

/// Where an agent finds its orchestrator: `socket`, or `server`.
struct OrchestratorAddress {
  std::filesystem::path socket;   ///< a Unix socket on this machine
  std::string server;             ///< "https://host:8642"
  std::string token;              ///< of the role worker; "" where no tokens are in force
  std::filesystem::path ca_file;  ///< PEM, trusted instead of the system's certificates
};

/// Makes connections to an orchestrator. Loop thread only.
class Dialer {
 public:
  /// Throws Error(kUsage) for a URL that is none, or certificates that cannot be read.
  Dialer(Loop* loop, OrchestratorAddress address);
  ~Dialer();

  /// Calls `done` later, with a wire (not yet reading) or, without one, why there is none. One at a
  /// time.
  using Done = std::function<void(std::shared_ptr<Wire> wire, const std::string& why)>;
  void Dial(Done done);

  /// For people: the address.
  const std::string& name() const { return name_; }

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::string name_;
};

}  // namespace evald
