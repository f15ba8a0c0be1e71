#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "orchestrator/fleet/loop.h"
#include "orchestrator/fleet/wire.h"

namespace evald {

/// The address of an agent's orchestrator: `socket`, or else `server`.
struct OrchestratorAddress {
  std::filesystem::path socket;   ///< a Unix socket on this machine
  std::string server;             ///< "https://host:8642"
  std::string token;              ///< a token of the role worker; "" if no tokens are in force
  std::filesystem::path ca_file;  ///< PEM; trusted in place of the system's certificates
};

/// Makes connections to an orchestrator. Loop thread only.
class Dialer {
 public:
  /// Throws Error(kUsage) for an invalid URL, or for certificates that cannot be read.
  Dialer(Loop* loop, OrchestratorAddress address);
  ~Dialer();

  /// Calls `done` later with a wire that is not reading yet, or with no wire and the reason. One
  /// Dial at a time.
  using Done = std::function<void(std::shared_ptr<Wire> wire, const std::string& why)>;
  void Dial(Done done);

  /// Whether the server answered the last Dial with 401 or 403: its tokens do not include this one.
  bool refused() const;
  /// The address of this host in the last connection over TCP: others probably reach this host
  /// under it. "" before the first one.
  const std::string& local_address() const;
  /// The address, for people.
  const std::string& name() const { return name_; }

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::string name_;
};

}  // namespace evald
