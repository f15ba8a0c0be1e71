#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/read_roots.h"
#include "http_client/client.h"
#include "worker/server/options.h"
#include "worker/server/server_process.h"

namespace evald::server {

/// The pause before a server is asked again whether it is ready. `asked` counts the questions so
/// far; `draw` is uniform in [0, 1). A server that was started here (`own`) is asked every 0.2 s. A
/// given server belongs to others, and many workers may wait for it: the pause is 0.5 s at first
/// and grows to 5 s. Each pause varies by up to a quarter, so that workers do not ask in step.
std::chrono::milliseconds ProbePause(bool own, int asked, double draw);

/// The server that answers the requests: started here or given. Every call blocks; the engine's
/// thread is the only caller.
class Server {
 public:
  /// Reads the checkpoint's config.json below `roots`.
  Server(const Options& options, ReadRoots roots);

  /// Starts (or finds) the server for the checkpoint and waits until the server reports that it is
  /// healthy. Throws Error(kInfrastructure) with the end of the server's log if the server dies or
  /// `ready_timeout` passes.
  void Start(const std::filesystem::path& checkpoint);

  /// False once a server that was started here has ended; always true for a given server.
  bool alive() { return !process_ || process_->running(); }
  /// Restarts a server that died. Throws Error(kInfrastructure) if it died too often.
  void Restart();

  /// A POST to /v1/completions; `timeout` is for the whole call.
  http_client::Request Completion(std::string body, std::chrono::milliseconds timeout) const;
  http_client::Response Complete(const Json& body, std::chrono::milliseconds timeout);

  std::string completions_url() const { return url_ + kCompletions; }
  const std::string& url() const { return url_; }
  const std::string& model() const { return model_; }
  int max_length() const { return max_length_; }
  int restarts() const { return restarts_; }
  /// "; its log ends: ..." for errors, or "".
  std::string LogTail() const;

 private:
  static constexpr const char* kCompletions = "/v1/completions";

  void Launch();
  void WaitUntilHealthy();
  bool Healthy(std::string* why_not);
  void AskForModel();
  void ReadConfig();
  http_client::Response Probe(const std::string& path);
  http_client::Request Call(const char* method, const std::string& path,
                            std::chrono::milliseconds timeout) const;

  Options options_;
  ReadRoots roots_;
  http_client::Client http_;
  std::unique_ptr<ServerProcess> process_;
  std::filesystem::path checkpoint_;
  std::string url_;
  std::string model_;
  int max_length_ = 0;
  int restarts_ = 0;
  std::mt19937 random_{std::random_device{}()};  ///< for pauses only
};

/// What came in place of a completion: the failure, or the status with the server's words.
std::string WhyNot(const http_client::Response& reply);

}  // namespace evald::server
