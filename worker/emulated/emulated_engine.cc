#include "worker/emulated/emulated_engine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <queue>
#include <random>
#include <thread>
#include <unordered_map>

#include "base/file.h"
#include "base/hash.h"
#include "base/names.h"
#include "base/text.h"
#include "evald/error.h"
#include "worker/engine/settings.h"
#include "worker/engine/thinking.h"

namespace evald {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// Settings may ask for more than a clock can show, for example a token at 1e-300 tokens per second.
constexpr double kRequestSecondsMax = 1e6;

struct Model {
  double delay_ms = 0;
  double prefill_tokens_per_second = 0;
  double tokens_per_second = 0;
  double jitter = 0;
  double load_seconds = 0;
  double clock_scale = 1;
  double fail_rate = 0;
  int concurrency = 8;
  int max_length = 4096;
  int tokens_out_least = 16;
  int tokens_out_most = 16;
  std::string text;
  std::string journal;
  std::string times;
  double slow = 1;
};

// Paths come from the environment and never from the settings, which a submitted run sets.
std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Model ReadModel(const Json& json, const std::string& device) {
  const Settings settings("emulated", json);
  Model model;
  model.delay_ms = settings.Get("delay_ms", model.delay_ms);
  model.prefill_tokens_per_second = settings.Get("prefill_tokens_per_second", 0.0);
  model.tokens_per_second = settings.Get("tokens_per_second", 0.0);
  model.jitter = settings.Get("jitter", 0.0);
  model.load_seconds = settings.Get("load_seconds", 0.0);
  model.clock_scale = settings.Get("clock_scale", 1.0);
  model.fail_rate = settings.Get("fail_rate", 0.0);
  model.concurrency = settings.Get("concurrency", model.concurrency);
  model.max_length = settings.Get("max_length", model.max_length);
  model.text = settings.Get<std::string>("text", "");
  model.journal = FromEnvironment("EVALD_EMULATED_JOURNAL");
  model.times = FromEnvironment("EVALD_EMULATED_TIMES");
  if (settings.Has("slow")) {
    const Json slow = settings.Require<Json>("slow");
    model.slow = slow.value(device, 1.0);
  }
  if (settings.Has("tokens_out")) {
    const Json value = settings.Require<Json>("tokens_out");
    const auto range = value.is_array() ? settings.Require<std::vector<int>>("tokens_out")
                                        : std::vector<int>(2, settings.Require<int>("tokens_out"));
    model.tokens_out_least = range[0];
    model.tokens_out_most = range[1];
  }
  return model;
}

// The device's name lists the modelled times.
std::string DeviceName(const Model& model) {
  if (!model.times.empty())
    return fmt::format("emulated, times from a file, clock {}", model.clock_scale);
  return fmt::format("emulated, {} ms, {} tokens/s in, {} out, clock {}", model.delay_ms,
                     model.prefill_tokens_per_second, model.tokens_per_second, model.clock_scale);
}

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

uint64_t SeedOf(uint64_t seed, const Request& request) {
  Hasher hasher;
  hasher.Update(fmt::format("{} {} {} {} {} {}\n", seed, ToString(request.kind), request.doc_id,
                            request.idx, request.repeat, request.context.size()));
  hasher.Update(request.context);
  hasher.Update(request.continuation);
  return std::stoull(hasher.Hex().substr(0, 16), nullptr, 16);
}

int PromptTokens(const Request& request) {
  if (!request.context_tokens.empty()) return static_cast<int>(request.context_tokens.size());
  return static_cast<int>(request.context.size() / 4) + 1;
}

void ReplaceAll(std::string* text, std::string_view what, const std::string& by) {
  for (size_t at = 0; (at = text->find(what, at)) != std::string::npos; at += by.size()) {
    text->replace(at, what.size(), by);
  }
}

// Seconds of each document of a task, from a file of 32-bit floats.
class DocumentTimes {
 public:
  explicit DocumentTimes(std::string folder) : folder_(std::move(folder)) {}

  double Of(const std::string& task, int64_t document) {
    auto found = files_.find(task);
    if (found == files_.end()) found = files_.emplace(task, MappedFile(Path(task))).first;
    const std::string_view bytes = found->second.view();
    float seconds = 0;
    if (document < 0 || (static_cast<size_t>(document) + 1) * sizeof seconds > bytes.size()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: has times of {} documents, none of document {}", Path(task),
                              bytes.size() / sizeof seconds, document));
    }
    std::memcpy(&seconds, bytes.data() + static_cast<size_t>(document) * sizeof seconds,
                sizeof seconds);
    return seconds;
  }

 private:
  std::string Path(const std::string& task) const {
    return folder_ + "/" + FolderNameOf(task) + ".f32";
  }

  std::string folder_;
  std::unordered_map<std::string, MappedFile> files_;
};

class EmulatedEngine : public Engine {
 public:
  explicit EmulatedEngine(const EngineOptions& options)
      : model_(ReadModel(options.settings, options.device)),
        seed_(options.seed),
        failures_(std::random_device()()),
        slots_(static_cast<size_t>(model_.concurrency)),
        times_(model_.times) {
    if (model_.journal.empty()) return;
    journal_.reset(::open(model_.journal.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!journal_) ThrowErrno(model_.journal, "open", errno);
  }

  EngineInfo Info() const override {
    EngineInfo info;
    info.name = "emulated";
    info.version = "1";
    info.kinds = {RequestKind::kGenerateUntil, RequestKind::kLoglikelihood,
                  RequestKind::kLoglikelihoodRolling};
    info.max_length = model_.max_length;
    info.deterministic = true;
    info.emulated = true;
    info.concurrency = model_.concurrency;
    info.device = DeviceName(model_);
    return info;
  }

  void Load(const std::filesystem::path&) override {
    std::this_thread::sleep_for(Seconds(model_.load_seconds * model_.clock_scale));
  }

  void Submit(uint64_t tag, Request request) override;
  std::vector<Finished> Step(std::chrono::milliseconds budget) override;
  size_t pending() const override { return due_.size(); }

  void CancelAll() override {
    due_ = {};
    std::fill(slots_.begin(), slots_.end(), Clock::time_point{});
  }

  Json LoadReport() const override {
    Json report = Json::object();
    report["bytes"] = 0;
    report["seconds"] = model_.load_seconds;
    return report;
  }

 private:
  struct Due {
    Clock::time_point time;
    uint64_t order = 0;
    bool fails = false;
    Finished finished;
    std::string journal;  // its line
    bool operator>(const Due& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  Generation Answer(const Request& request, Random* random) const;
  double ModelSeconds(const std::string& task, const Generation& generation, Random* random);

  Model model_;
  uint64_t seed_;
  std::mt19937_64 failures_;
  std::vector<Clock::time_point> slots_;  ///< when each slot becomes free
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  uint64_t submitted_ = 0;
  DocumentTimes times_;
  UniqueFd journal_;
};

Generation EmulatedEngine::Answer(const Request& request, Random* random) const {
  Generation generation;
  generation.doc_id = request.doc_id;
  generation.idx = request.idx;
  generation.repeat = request.repeat;
  generation.kind = request.kind;
  generation.tokens_in = PromptTokens(request);
  if (request.kind != RequestKind::kGenerateUntil) {
    generation.loglikelihood = -10 * random->Unit();
    generation.is_greedy = random->Next() % 4 == 0;
    generation.finish = FinishReason::kScored;
    generation.tokens_out = static_cast<int>(request.continuation.size() / 4) + 1;
    return generation;
  }
  const auto choices = static_cast<uint64_t>(model_.tokens_out_most - model_.tokens_out_least) + 1;
  const int drawn = model_.tokens_out_least + static_cast<int>(random->Next() % choices);
  generation.tokens_out = std::min(drawn, request.sampling.max_gen_toks);
  generation.finish = drawn > generation.tokens_out ? FinishReason::kLength : FinishReason::kStop;
  generation.text = model_.text;
  if (generation.text.empty()) {
    for (int i = 0; i < generation.tokens_out; ++i) {
      fmt::format_to(std::back_inserter(generation.text), " w{}", random->Next() % 10000);
    }
    return generation;
  }
  ReplaceAll(&generation.text, "{doc_id}", std::to_string(request.doc_id));
  ReplaceAll(&generation.text, "{idx}", std::to_string(request.idx));
  ReplaceAll(&generation.text, "{repeat}", std::to_string(request.repeat));
  ReplaceAll(&generation.text, "{task}", request.task);
  // An id would need a tokenizer, which this engine has not.
  if (!request.sampling.think_end.text.empty()) {
    const ThinkingEnd end(request.sampling.think_end, nullptr);
    SetAnswer(end.OfText(generation.text), request.sampling.until, "", generation.finish,
              &generation);
  }
  return generation;
}

double EmulatedEngine::ModelSeconds(const std::string& task, const Generation& generation,
                                    Random* random) {
  if (!model_.times.empty()) return times_.Of(task, generation.doc_id);
  double seconds = model_.delay_ms / 1e3;
  if (model_.prefill_tokens_per_second > 0) {
    seconds += generation.tokens_in / model_.prefill_tokens_per_second;
  }
  if (model_.tokens_per_second > 0 && generation.kind == RequestKind::kGenerateUntil) {
    seconds += generation.tokens_out / model_.tokens_per_second;
  }
  return seconds * (1 + model_.jitter * (2 * random->Unit() - 1));
}

void EmulatedEngine::Submit(uint64_t tag, Request request) {
  Random random(SeedOf(seed_, request));
  Due due;
  due.finished = {tag, Answer(request, &random)};
  due.fails = std::uniform_real_distribution<>()(failures_) < model_.fail_rate;
  due.order = submitted_++;
  if (journal_) {
    due.journal =
        fmt::format("{} {} {} {}\n", request.task, request.doc_id, request.idx, request.repeat);
  }
  const double asked = ModelSeconds(request.task, due.finished.generation, &random) *
                       model_.clock_scale * model_.slow;
  const double seconds = std::min(asked, kRequestSecondsMax);
  const auto slot = std::min_element(slots_.begin(), slots_.end());
  due.time =
      std::max(*slot, Clock::now()) + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  *slot = due.time;
  due_.push(std::move(due));
}

std::vector<Finished> EmulatedEngine::Step(std::chrono::milliseconds budget) {
  std::vector<Finished> finished;
  if (due_.empty()) return finished;
  const Clock::time_point deadline = Clock::now() + budget;
  if (due_.top().time > Clock::now()) {
    std::this_thread::sleep_until(std::min(deadline, due_.top().time));
  }
  const Clock::time_point now = Clock::now();
  while (!due_.empty() && due_.top().time <= now) {
    if (due_.top().fails) {
      CancelAll();
      throw Error(ErrorKind::kInfrastructure, "the emulated engine failed, as fail_rate asks");
    }
    finished.push_back(due_.top().finished);
    const std::string& line = due_.top().journal;  // one write: workers share the file
    if (journal_ && ::write(journal_.get(), line.data(), line.size()) < 0)
      ThrowErrno(model_.journal, "write", errno);
    due_.pop();
  }
  return finished;
}

}  // namespace

std::unique_ptr<Engine> MakeEmulatedEngine(const EngineOptions& options) {
  return std::make_unique<EmulatedEngine>(options);
}

}  // namespace evald
