#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "base/socket_directory.h"
#include "http_client/client.h"
#include "worker/engine/engine.h"
#include "worker/server/checkpoint_shape.h"
#include "worker/server/dialect.h"
#include "worker/server/options.h"
#include "worker/server/server_process.h"

namespace evald::server {

/// The pause before a server is asked again whether it is ready. `asked` counts the questions so
/// far; `draw` is uniform in [0, 1). A server that was started here (`own`) is asked every 0.2 s. A
/// given server belongs to others, and many workers may wait for it: the pause is 0.5 s at first
/// and grows to 5 s. Each pause varies by up to a quarter, so that workers do not ask in step.
std::chrono::milliseconds ProbePause(bool own, int asked, double draw);

/// The place in which a server is started.
struct ServerPlace {
  ReadRoots roots;                ///< below which the checkpoint's files are read
  std::vector<std::string> gpus;  ///< UUIDs of the GPUs that it may compute on; none: the processor
  int threads = 1;                ///< processor threads that it may compute on
};

/// The server that answers the requests: started here or given. Every call blocks; the engine's
/// thread is the only caller.
class Server {
 public:
  /// `engine` is the engine's name in eval.yaml. Starts nothing yet.
  Server(const std::string& engine, const Options& options, ServerPlace place);

  /// Throws Error(kInput) if the program of a server that is to be started is not on this host.
  void RequireProgram() const;

  /// Starts (or finds) the server for the checkpoint and waits until the server reports that it is
  /// healthy. Throws Error(kInput) if the server's program is missing or too old. Throws
  /// Error(kInfrastructure), with the reason from the server's log, if the server dies or
  /// `ready_timeout` passes.
  void Start(const std::filesystem::path& checkpoint);

  /// The reason why the weights of `checkpoint` cannot take the place of those that the server has;
  /// "" if they can.
  std::string WhyNoSwap(const std::filesystem::path& checkpoint);
  /// Puts the weights of `checkpoint` in place of those that the server has. Call it only if no
  /// request is under way. Throws Error(kInfrastructure): the server must then be started anew.
  void Swap(const std::filesystem::path& checkpoint);

  /// Empties the server's prefix cache. False if that cannot be done.
  bool EmptyCache() { return dialect_->EmptyCache(AsCaller()); }

  /// False once a server that was started here has ended, whatever its exit status; always true for
  /// a given server.
  bool alive() { return !process_ || process_->running(); }
  /// Restarts a server that died. Throws Error(kInfrastructure) if it died too often.
  void Restart();

  /// A POST of JSON; `timeout` is for the whole call. `bytes_max`: of the answer's body.
  http_client::Request Post(const std::string& path, std::string body,
                            std::chrono::milliseconds timeout, size_t bytes_max) const;
  http_client::Response Ask(const std::string& path, const Json& body,
                            std::chrono::milliseconds timeout);

  const Dialect& dialect() const { return *dialect_; }
  const ServerFacts& facts() const { return facts_; }
  /// The server's address, key and model for its clients. The member `alive` is empty.
  ServedApi api() const { return {url_, socket_, options_.api_key, facts_.model, nullptr}; }
  /// The program that was started, or the URL of the server that was given.
  const std::string& program() const { return process_ ? program_ : url_; }
  bool started_here() const { return process_ != nullptr; }
  /// The server and a path of its, for messages: "http://host:80/v1/models", "vllm: /health".
  std::string Name(const std::string& path) const;
  /// "; its log ends: ..." for errors, or "".
  std::string LogTail() const;

 private:
  bool starts() const { return options_.base_url.empty(); }
  void ListenOn(LaunchSetup* setup);
  void RequireProgram(const Launch& launch) const;
  void ReadShape();
  void StartProcess();
  void WaitUntilHealthy();
  [[noreturn]] void ThrowEnded();
  bool Healthy(std::string* why_not);
  void Learn();
  void AskForModel();
  void ReadConfig();
  http_client::Response Probe(const std::string& path);
  http_client::Request Call(const char* method, const std::string& path,
                            std::chrono::milliseconds timeout) const;
  Caller AsCaller();

  std::string engine_;
  Options options_;
  ServerPlace place_;
  std::unique_ptr<Dialect> dialect_;
  http_client::Client http_;
  std::optional<SocketDirectory> sockets_;  ///< outlives the process
  std::unique_ptr<ServerProcess> process_;
  std::filesystem::path checkpoint_;
  /// Of the checkpoint on which the server was started; none if it is not known.
  std::optional<CheckpointShape> shape_;
  std::string program_;  ///< the first word of the command
  std::string url_;
  std::filesystem::path socket_;  ///< empty: the server listens on a port
  ServerFacts facts_;
  bool ready_ = false;  ///< the last start came to its end
  int restarts_ = 0;
  int swaps_ = 0;
  std::mt19937 random_{std::random_device{}()};  ///< for pauses only
};

/// The reason why `reply` is no completion: the failure, or the HTTP status with the server's
/// words.
std::string WhyNot(const http_client::Response& reply);

}  // namespace evald::server
