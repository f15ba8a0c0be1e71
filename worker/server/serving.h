#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "worker/engine/engine.h"
#include "worker/parity/parity_check.h"
#include "worker/server/determinism_probe.h"
#include "worker/server/options.h"
#include "worker/server/plan.h"
#include "worker/server/scorer.h"
#include "worker/server/server.h"

namespace evald::server {

/// A server with the checkpoint that it holds, and what it has shown that it can do.
class Serving {
 public:
  /// Throws Error(kUsage) for wrong settings. Starts nothing.
  explicit Serving(const EngineOptions& options);

  /// As Engine::RequirePrograms.
  void RequireProgram() const { server_.RequireProgram(); }

  /// Exchanges the server's weights for those of the checkpoint, or starts a server. After any
  /// failure or doubt about exchanged weights, a server is started. Throws Error; Error(kInput) if
  /// a server that was just started answers otherwise than evald's own engine (worker/parity/).
  void Load(const std::filesystem::path& directory);
  /// Starts a server that died once more, on the same checkpoint. Throws Error.
  void Restart();

  Server& server() { return server_; }
  const Server& server() const { return server_; }
  const Options& options() const { return options_; }
  const PlanSetup& setup() const { return setup_; }
  const Scorer& scorer() const { return scorer_; }
  bool on_gpu() const { return !gpus_.empty(); }
  /// Calls under way at once.
  int concurrency() const;
  /// Whether the server was to give the same bits in any batch, and did so in a probe.
  bool deterministic() const { return determinism_ && determinism_->shown; }
  /// What came of the last parity check (EngineInfo::parity).
  const std::string& verdict() const { return verdict_; }
  /// Facts of the last Load (Engine::LoadReport).
  const Json& report() const { return report_; }

  static constexpr const char* kCompletions = "/v1/completions";

 private:
  void StartServer(const std::filesystem::path& directory);
  std::string TrySwap(const std::filesystem::path& directory);
  void ReadCheckpoint(const std::filesystem::path& directory);
  std::string WhyNotExchanged(Scorer before);
  void Prepare();
  void Greet();
  void Probe();
  void WarmUp();
  Scorer JudgeScoring();
  parity::NumberType TypeOf(const std::filesystem::path& directory) const;
  std::string Continue(const std::string& prompt, int tokens);
  parity::Report CheckParity();
  void RequireParity();

  std::vector<std::string> gpus_;
  Options options_;
  ReadRoots roots_;
  Server server_;
  PlanSetup setup_;
  std::unique_ptr<Tokenizer> tokenizer_;  ///< null if the checkpoint's tokenizer is not understood
  Scorer scorer_;
  /// Whether the self-test's scores are not of the last weights: the exchange since then was shown
  /// by the parity check.
  bool values_are_older_ = false;
  GenerationConfig end_tokens_only_;
  parity::ParityCheck parity_;
  std::vector<std::optional<double>> compared_;  ///< the server's scores in the last parity check
  std::optional<Determinism> determinism_;       ///< none if the server was not to be deterministic
  std::string verdict_;                          ///< of the last parity check
  int starts_ = 0;
  Json report_ = Json::object();
};

/// Whether the server refused the request itself: asking again would not help.
bool Refused(const http_client::Response& reply);

}  // namespace evald::server
