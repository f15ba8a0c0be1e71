#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "http_client/request.h"
#include "worker/server/options.h"
#include "worker/server/scoring_way.h"

namespace evald::server {

/// Makes a call to the server and waits for its end. `body` null: a GET; else a POST of this JSON.
using Caller = std::function<http_client::Response(const std::string& path, const Json& body,
                                                   std::chrono::milliseconds timeout)>;

/// Limits of time for a question, and for one step of an exchange of weights.
inline constexpr std::chrono::milliseconds kQuestionTimeout{30'000};
inline constexpr std::chrono::milliseconds kSwapStepTimeout{600'000};
/// Stop strings that are sent to servers that take any number.
inline constexpr int kStopsSent = 64;

/// The place in which a server is started.
struct LaunchSetup {
  std::filesystem::path checkpoint;  ///< the staged folder
  /// The Unix socket on which the server listens, if its dialect says so (Dialect::on_socket)
  std::filesystem::path socket;
  int port = 0;                   ///< else the port of 127.0.0.1
  std::vector<std::string> gpus;  ///< UUIDs of the GPUs that it computes on; none: the processor
  int threads = 1;                ///< processor threads that it may compute on
  /// "bfloat16", "float16" or "float32"; "auto": the server chooses
  std::string dtype = "auto";
};

/// A program with its arguments, and variables added to the worker's environment.
struct Launch {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
};

/// What a running server says of itself.
struct ServerFacts {
  std::string version;  ///< of the program; "": it does not say
  std::string model;    ///< the name in requests
  int max_length = 0;   ///< tokens of context; 0: it does not say
  int stops_max = 0;    ///< stop strings in one request; 0: it does not say
  int concurrency = 0;  ///< sequences that it computes at once; 0: it does not say
};

/// How one server program differs from others. A dialect has no state.
class Dialect {
 public:
  virtual ~Dialect() = default;

  /// The command that starts the server. Called only if no server is given.
  virtual Launch LaunchOf(const Options& options, const LaunchSetup& setup) const = 0;
  /// Whether LaunchSetup::dtype is the type in which the server computes.
  virtual bool takes_dtype() const { return false; }
  /// Whether the server is started on a Unix socket, where only this user reaches it.
  virtual bool on_socket() const { return false; }
  /// How to get the program, for an error that says that it is not there; "" if nobody knows.
  virtual std::string Install() const { return ""; }
  /// The line of the server's log that tells why it did not start; "" if none does.
  virtual std::string Reason(const std::string& /*log*/) const { return ""; }
  /// Asks a healthy server for what `facts` lacks. Throws Error(kInput) if the server is too old.
  virtual void Learn(const Caller& /*call*/, ServerFacts* /*facts*/) const {}
  /// Whether batching does not change the answers of a server that was started with the options.
  virtual bool Deterministic(const Options& options, bool /*on_gpu*/) const {
    return options.deterministic;
  }
  /// Members that every request for a text has.
  virtual Json GenerateExtra() const { return Json::object(); }
  /// Whether the server knows `skip_special_tokens: false` in a request for a text.
  virtual bool ShowsSpecialTokens() const { return false; }
  /// The ways in which the server scores, the cheapest first. Each is tried before it is used.
  virtual std::vector<std::unique_ptr<ScoringWay>> ScoringWays(const CompletionsStyle& style) const;
  /// The body of a question for the server's own tokens of a text, special ones included: POST
  /// /tokenize answers {"tokens": [id, ...]}. Null if the server has no such path.
  virtual Json TokenizeBody(const std::string& model, const std::string& text) const;
  /// Empties the server's prefix cache. False if it has no such call, or refuses.
  virtual bool EmptyCache(const Caller& /*call*/) const { return false; }
  /// Why the weights of another checkpoint with the same shapes and tokenizer cannot take the place
  /// of those that the server has; "" if they can. `tied`: the output layer is the embedding.
  virtual std::string WhyNoSwap(bool /*on_gpu*/, bool /*tied*/) const {
    return "this server cannot exchange its weights";
  }
  /// Exchanges the weights; no request is under way. `label` is a name for the new weights. Throws
  /// Error(kInfrastructure) if a step fails: the server must then be started anew.
  virtual void Swap(const Caller& /*call*/, const std::filesystem::path& /*checkpoint*/,
                    const std::string& /*label*/) const {}
};

/// The integer below these keys of nested objects; 0 if there is none.
int IntegerAt(const Json& json, std::initializer_list<const char*> keys);

/// The dialect of an engine (its name in eval.yaml). Throws std::logic_error for an engine without
/// a server.
std::unique_ptr<Dialect> MakeDialect(const std::string& engine);

// One file of dialects/ each.
std::unique_ptr<Dialect> MakeOpenaiDialect();
std::unique_ptr<Dialect> MakeVllmDialect();
std::unique_ptr<Dialect> MakeSglangDialect();
std::unique_ptr<Dialect> MakeLlamaServerDialect();

}  // namespace evald::server
