#include "worker/endpoint/answering.h"

#include <utility>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/random_id.h"

namespace evald::endpoint {
namespace {

[[noreturn]] void RefuseForNow(const EngineQueue& queue) {
  if (queue.ended()) throw ApiError(503, "the endpoint ends", "", "engine");
  throw ApiError(429, "the endpoint has too much to do; try again", "", "busy");
}

}  // namespace

Answering::Answering(const Services& services, Call call, http::Responder responder)
    : services_(services), call_(std::move(call)), responder_(std::move(responder)) {
  head_.id = (call_.chat ? "chatcmpl-" : "cmpl-") + RandomId();
  head_.created = static_cast<int64_t>(WallSeconds());
  head_.model = services_.model->name;
  if (call_.stream) pipe_ = std::make_shared<Pipe>(services_.post);
  prompt_scores_.resize(call_.prompts.size());
  choices_.resize(call_.choices());
  const Tokenizer& tokenizer = *services_.model->tokenizer;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (call_.logprobs >= 0) {
      static const std::vector<int32_t> none;
      const std::vector<int32_t>& before = call_.prompts[PromptOf(i)].tokens;
      choices_[i].logprobs =
          std::make_unique<LogprobsWriter>(call_, tokenizer, call_.echo ? none : before);
    }
    if (call_.stream)
      choices_[i].stream = std::make_unique<TextStream>(tokenizer, call_.sampling.until);
  }
}

bool Answering::Wanted() const {
  if (over_) return false;
  return piped_ ? !pipe_->gone() : responder_.wanted();
}

void Answering::Start() {
  std::vector<EngineWork> works;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (call_.tokens_max[PromptOf(i)] > 0) {
      works.push_back(WorkFor(i));
    } else {
      choices_[i].generation.emplace().finish = FinishReason::kLength;
    }
  }
  std::vector<ScoreWish> wishes;
  for (size_t p = 0; ScoresPrompts() && p < call_.prompts.size(); ++p) wishes.push_back(WishFor(p));
  const bool nothing = works.empty() && wishes.empty();
  if (!wishes.empty() && !services_.scores->Ask(std::move(wishes))) RefuseForNow(*services_.queue);
  if (!works.empty() && !services_.queue->Add(std::move(works))) {
    over_ = true;
    RefuseForNow(*services_.queue);
  }
  if (nothing) Push({}, true);
}

EngineWork Answering::WorkFor(size_t choice) {
  const size_t prompt = PromptOf(choice);
  EngineWork work;
  Request& request = work.request;
  request.doc_id = call_.seed;
  request.repeat = static_cast<int>(choice % static_cast<size_t>(call_.n));
  request.kind = RequestKind::kGenerateUntil;
  request.sampling = call_.sampling;
  request.sampling.max_gen_toks = call_.tokens_max[prompt];
  request.context_tokens = call_.prompts[prompt].tokens;
  if (services_.model->reports_tokens && (call_.stream || call_.logprobs >= 0)) {
    work.watch.emplace();
    work.watch->top = call_.logprobs;
    work.watch->on_token = [self = shared_from_this(), choice](TokenReport report) {
      Event event;
      event.index = choice;
      event.token = std::move(report);
      self->Push(std::move(event), self->call_.stream);
    };
  }
  work.wanted = [self = shared_from_this()] { return self->Wanted(); };
  work.done = [self = shared_from_this(), choice](Finished finished) {
    Event event;
    event.index = choice;
    event.finished = std::move(finished);
    self->Push(std::move(event), true);
  };
  return work;
}

ScoreWish Answering::WishFor(size_t prompt) {
  ScoreWish wish;
  wish.tokens = call_.prompts[prompt].tokens;
  wish.top = call_.logprobs;
  wish.wanted = [self = shared_from_this()] { return self->Wanted(); };
  wish.done = [self = shared_from_this(), prompt](PromptScore score) {
    Event event;
    event.index = prompt;
    event.score = std::move(score);
    self->Push(std::move(event), true);
  };
  return wish;
}

void Answering::Push(Event event, bool urgent) {
  const std::lock_guard lock(inbox_mutex_);
  inbox_.push_back(std::move(event));
  if (!urgent || scheduled_) return;
  scheduled_ = true;
  services_.desk->Post([self = shared_from_this()] { self->Drain(); });
}

void Answering::Drain() {
  while (true) {
    std::vector<Event> events;
    {
      const std::lock_guard lock(inbox_mutex_);
      events = std::exchange(inbox_, {});
      scheduled_ = !events.empty();
    }
    if (events.empty()) return;
    try {
      for (Event& event : events) Handle(std::move(event));
      if (over_) continue;
      if (call_.stream) {
        WriteChunks();
      } else if (Complete()) {
        Reply();
      }
    } catch (const std::exception& e) {
      log::Error("{}: {}", head_.id, e.what());
      Fail(ApiErrorFor(Error(ErrorKind::kInternal, e.what())));
    }
  }
}

void Answering::Handle(Event event) {
  if (over_) return;
  if (event.score) {
    if (event.score->refused) return FailFor(*event.score->refused);
    prompt_scores_[event.index] = std::move(event.score->reports);
  } else if (event.finished) {
    if (event.finished->refused) return FailFor(*event.finished->refused);
    choices_[event.index].generation = std::move(event.finished->generation);
  } else if (event.token) {
    Choice& choice = choices_[event.index];
    if (Begin(event.index)) {
      Take(&choice, std::move(*event.token));
    } else {
      choice.early.push_back(std::move(*event.token));
    }
  }
}

void Answering::FailFor(const Error& error) { Fail(ApiErrorFor(error)); }

void Answering::Fail(const ApiError& error) {
  if (over_) return;
  if (piped_) {
    Write(Frame(error.ToJson()) + kDoneFrame, true);
  } else {
    responder_(ErrorResponse(error));
  }
  over_ = true;
}

// Writes the echo of a choice, once it is known. False: it is not yet.
bool Answering::Begin(size_t index) {
  Choice& choice = choices_[index];
  if (choice.begun) return true;
  const size_t prompt = PromptOf(index);
  if (ScoresPrompts() && !prompt_scores_[prompt]) return false;
  choice.begun = true;
  if (call_.echo) choice.piece = call_.prompts[prompt].text;
  if (ScoresPrompts()) {
    choice.logprobs->AddFirst(call_.prompts[prompt].tokens[0]);
    for (const TokenReport& report : *prompt_scores_[prompt]) choice.logprobs->Add(report);
  }
  for (TokenReport& report : std::exchange(choice.early, {})) Take(&choice, std::move(report));
  return true;
}

void Answering::Take(Choice* choice, TokenReport report) {
  if (choice->stream) choice->piece += choice->stream->Add(report.token);
  if (choice->logprobs) choice->logprobs->Add(report);
}

bool Answering::Complete() const {
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (!choices_[i].generation || (ScoresPrompts() && !prompt_scores_[PromptOf(i)])) return false;
  }
  return true;
}

Json Answering::LogprobsOf(Choice* choice) const {
  return choice->logprobs ? choice->logprobs->Take() : Json();
}

Usage Answering::UsageOf() const {
  Usage usage;
  for (const Prompt& prompt : call_.prompts)
    usage.prompt_tokens += static_cast<int64_t>(prompt.tokens.size());
  for (const Choice& choice : choices_) {
    if (choice.generation) usage.completion_tokens += choice.generation->tokens_out;
  }
  return usage;
}

void Answering::Reply() {
  Json choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    Begin(i);
    const std::string text = choice.piece + choice.generation->text;
    choices.push_back(
        WholeChoice(call_.chat, i, text, LogprobsOf(&choice), FinishReasonOf(*choice.generation)));
  }
  over_ = true;
  responder_(http::JsonResponse(
      200, ToLine(WholeReply(call_.chat, head_, std::move(choices), UsageOf()))));
}

void Answering::WriteChunks() {
  for (size_t i = 0; i < choices_.size(); ++i) WriteChunk(i);
  for (const Choice& choice : choices_) {
    if (!choice.sent) return;
  }
  std::string end;
  if (call_.stream_usage) end = Frame(UsageChunk(call_.chat, head_, UsageOf()));
  Write(end + kDoneFrame, true);
  over_ = true;
}

// Writes what is new of a choice.
void Answering::WriteChunk(size_t index) {
  Choice& choice = choices_[index];
  if (choice.sent) return;
  const bool new_choice = !choice.begun;
  if (!choice.generation && new_choice) return;  // nothing has come
  if (!Begin(index)) return;
  std::string frames;
  if (call_.chat && !choice.role_sent) frames = Frame(RoleChunk(head_, index));
  choice.role_sent = true;
  const char* reason = nullptr;
  if (choice.generation) {
    choice.piece += choice.stream->Finish(choice.generation->text);
    reason = FinishReasonOf(*choice.generation);
    choice.sent = true;
  }
  const bool has_logprobs = choice.logprobs && !choice.logprobs->empty();
  if (choice.piece.empty() && !has_logprobs && reason == nullptr) {
    if (!frames.empty()) Write(frames, false);
    return;
  }
  Json logprobs = has_logprobs ? choice.logprobs->Take() : Json();
  frames += Frame(Chunk(call_.chat, head_, index, std::exchange(choice.piece, ""),
                        std::move(logprobs), reason));
  Write(frames, false);
}

void Answering::Write(const std::string& frames, bool last) {
  pipe_->Write(frames, last);
  if (piped_) return;
  http::Response response;
  response.events = Pipe::Source(pipe_);
  responder_(std::move(response));
  piped_ = true;
}

}  // namespace evald::endpoint
