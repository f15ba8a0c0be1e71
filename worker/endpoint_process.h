#pragma once

#include <filesystem>
#include <string>

#include "worker/endpoint/endpoint.h"
#include "worker/process.h"

namespace evald {

/// The options of a worker program that offers its engine's API instead of working for an agent.
struct EndpointProcess {
  EngineOptions engine;
  std::filesystem::path checkpoint;  ///< loaded where it is
  std::string model_name;            ///< "" takes the folder's
  std::filesystem::path key_file;    ///< "": a random key, or none for a Unix socket
  endpoint::EndpointOptions api;
  bool json = false;   ///< prints one JSON document: {"url", "model", "key", ...}
  bool quiet = false;  ///< prints nothing for people
};

/// Loads the checkpoint, holding the GPU if the engine is on one, and serves the API until SIGINT
/// or SIGTERM; a second one ends the process at once. Says on standard error where it serves.
/// Returns the exit status: 0 after a signal, 3 if the engine broke. Throws Error.
int RunEndpoint(const EndpointProcess& options, EngineMaker make_engine);

}  // namespace evald
