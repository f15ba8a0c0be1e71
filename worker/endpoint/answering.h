#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http_server/message.h"
#include "worker/endpoint/api_error.h"
#include "worker/endpoint/call.h"
#include "worker/endpoint/desk.h"
#include "worker/endpoint/engine_queue.h"
#include "worker/endpoint/pipe.h"
#include "worker/endpoint/prompt_scores.h"
#include "worker/endpoint/reply.h"

namespace evald::endpoint {

/// What answering calls needs; all of it outlives the calls.
struct Services {
  const ServedModel* model = nullptr;
  EngineQueue* queue = nullptr;
  PromptScores* scores = nullptr;
  Desk* desk = nullptr;
  /// Runs work on the HTTP server's thread (http::Server::Post).
  std::function<void(std::function<void()>)> post;
};

/// One call for text under way. Its requests run in the engine; their tokens and answers come in on
/// the engine's thread, and a thread of the desk makes the reply of them, in pieces for a stream.
class Answering : public std::enable_shared_from_this<Answering> {
 public:
  Answering(const Services& services, Call call, http::Responder responder);

  /// Asks the engine. Throws ApiError(429) if it has too much to do.
  void Start();

 private:
  /// News of one choice, or of one prompt.
  struct Event {
    size_t index = 0;  ///< of the choice; with `score`: of the prompt
    std::optional<TokenReport> token;
    std::optional<Finished> finished;
    std::optional<PromptScore> score;
  };
  struct Choice {
    std::unique_ptr<LogprobsWriter> logprobs;  ///< if the call wants them
    std::unique_ptr<TextStream> stream;        ///< if the call is a stream
    std::string piece;                         ///< text for the next chunk
    bool begun = false;                        ///< the echo is written
    std::vector<TokenReport> early;            ///< tokens that came before the echo
    std::optional<Generation> generation;
    bool role_sent = false;  ///< of a chat's stream: the first chunk is written
    bool sent = false;       ///< the last chunk is written
  };

  bool Wanted() const;
  EngineWork WorkFor(size_t choice);
  ScoreWish WishFor(size_t prompt);
  void Push(Event event, bool urgent);
  void Drain();
  void Handle(Event event);
  void Fail(const ApiError& error);
  void FailFor(const Error& error);
  bool ScoresPrompts() const { return call_.echo && call_.logprobs >= 0; }
  size_t PromptOf(size_t choice) const { return choice / static_cast<size_t>(call_.n); }
  bool Begin(size_t choice);
  void Take(Choice* choice, TokenReport report);
  bool Complete() const;
  void Reply();
  void WriteChunks();
  void WriteChunk(size_t index);
  void Write(const std::string& frames, bool last);
  Usage UsageOf() const;
  Json LogprobsOf(Choice* choice) const;

  Services services_;
  Call call_;
  http::Responder responder_;
  ReplyHead head_;
  std::shared_ptr<Pipe> pipe_;      ///< of a stream
  std::atomic<bool> piped_{false};  ///< the stream's first bytes are written
  std::atomic<bool> over_{false};   ///< answered, or failed
  std::mutex inbox_mutex_;
  std::vector<Event> inbox_;  ///< under inbox_mutex_, as is the next
  bool scheduled_ = false;    ///< a thread of the desk will look, or looks
  // The rest: the desk's thread that looks.
  std::vector<Choice> choices_;
  std::vector<std::optional<std::vector<TokenReport>>> prompt_scores_;
};

}  // namespace evald::endpoint
