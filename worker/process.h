#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "evald/error.h"
#include "protocol/channel.h"
#include "worker/engine/engine.h"

namespace evald {

/// The options of a worker process, from its command line.
struct WorkerOptions {
  std::filesystem::path socket;  ///< of the agent
  std::string id;                ///< "w0"
  EngineOptions engine;
  /// Why `engine` could not be read from the command line; reported to the agent
  std::optional<Error> unreadable;
};

/// Makes the engine of a worker program (worker/make_engine.h).
using EngineMaker = std::unique_ptr<Engine> (*)(const EngineOptions& options);

/// Connects to the agent and works until the agent ends the work (docs/protocol.md). The calling
/// thread receives messages and sends heartbeats; the engine has a thread of its own. The process
/// holds its GPU (device_lock.h) for as long as it lives. Returns the exit status: 0 after Drain or
/// Stop, 2 if the engine refuses its settings, 3 if the engine cannot be made now (its GPU is
/// missing, no memory) or breaks, or if the agent goes away. May end the process itself if the
/// engine does not return within 2 s of Stop.
int RunWorker(const WorkerOptions& options, EngineMaker make_engine);

/// The work of RunWorker, with a connection that is open and an engine that is made. Called by
/// RunWorker and by tests.
int RunWorkerOn(protocol::Channel* channel, Engine* engine);

}  // namespace evald
