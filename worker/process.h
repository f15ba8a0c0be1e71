#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "evald/error.h"
#include "protocol/channel.h"
#include "worker/engine.h"

namespace evald {

/// What a worker process was told on its command line.
struct WorkerOptions {
  std::filesystem::path socket;  ///< of the agent
  std::string id;                ///< "w0"
  EngineOptions engine;
  std::optional<Error>
      unreadable;  ///< why `engine` could not be read from the command line: the agent is told
};

/// Connects to the agent and works until it says so (docs/protocol.md). The calling thread receives
/// and sends heartbeats; the engine has a thread of its own. A GPU is held (device_lock.h) for as
/// long as the process lives. Returns the exit status: 0 after Drain or Stop, 2 when the engine
/// refuses its settings, 3 when it cannot be made now (a GPU that is not there, no memory), when
/// the engine broke or the agent went away. May end the process itself when the
/// engine does not come back within 2 s of Stop.
int RunWorker(const WorkerOptions& options);

/// The same over a connection that is there, with an engine that is made. For RunWorker and tests.
int RunWorkerOn(protocol::Channel* channel, Engine* engine);

}  // namespace evald
