#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/read_roots.h"
#include "worker/openai/http_client.h"
#include "worker/openai/options.h"
#include "worker/openai/server_process.h"

namespace evald::openai {

/// How long to wait before a server is asked again whether it is ready. `asked` counts the
/// questions so far, `draw` is uniform in [0, 1). A server that was started here (`own`) is asked
/// every 0.2 s. One that was given belongs to others and may have many workers that wait for it: it
/// is asked after 0.5 s, then less and less often, up to 5 s, each time up to a quarter more or
/// less, so that workers do not ask in step.
std::chrono::milliseconds ProbePause(bool own, int asked, double draw);

/// The server that answers: started here or given, and waited for until it is healthy. Everything
/// here blocks; the engine's thread is its only caller.
class Server {
 public:
  /// Reads the checkpoint's config.json below `roots`.
  Server(const Options& options, ReadRoots roots);

  /// Starts (or finds) the server for the checkpoint and waits until it says that it is healthy.
  /// Throws Error(kInfrastructure) with the end of the server's log when it dies or when
  /// `ready_timeout` passes.
  void Start(const std::filesystem::path& checkpoint);

  /// True while nothing is wrong with the process (always, for a server that was given).
  bool alive() { return !process_ || process_->running(); }
  /// Starts a server that died again. Throws Error(kInfrastructure) when it died too often.
  void Restart();

  /// One POST to /v1/completions.
  HttpReply Complete(const Json& body, std::chrono::milliseconds timeout);

  std::string completions_url() const { return url_ + "/v1/completions"; }
  const std::string& url() const { return url_; }
  const std::string& model() const { return model_; }
  int max_length() const { return max_length_; }
  int restarts() const { return restarts_; }
  HttpOptions http_options() const;
  /// "; its log ends: ..." for errors, or "".
  std::string LogTail() const;

 private:
  void Launch();
  void WaitUntilHealthy();
  bool Healthy(std::string* why_not);
  void AskForModel();
  void ReadConfig();

  Options options_;
  ReadRoots roots_;
  HttpClient http_;
  std::unique_ptr<ServerProcess> process_;
  std::filesystem::path checkpoint_;
  std::string url_;
  std::string model_;
  int max_length_ = 0;
  int restarts_ = 0;
  std::mt19937 random_{std::random_device{}()};  ///< for pauses only
};

}  // namespace evald::openai
