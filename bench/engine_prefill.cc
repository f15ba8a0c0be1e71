#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/engine_bench.h"
#include "bench/run_evald.h"

namespace evald::bench {
namespace {

// Times the product between any two batches, for as long as a third of a batch: what else the
// machine has to do changes within seconds.
class Rounds {
 public:
  Rounds(Engine* engine, const OneDnnProduct& product) : engine_(engine), product_(product) {}

  void Run(Request prompt) {
    double round_seconds = 0, round_product = 0;
    engine_->Submit(0, std::move(prompt));
    double before = OneDnnRate(product_, kProductSeconds);
    while (engine_->pending() > 0) {
      const int64_t begin = MonotonicMicros();
      const std::clock_t clock = std::clock();
      engine_->Step(std::chrono::milliseconds(0));
      const double seconds = static_cast<double>(MonotonicMicros() - begin) / 1e6;
      processor_seconds_ += static_cast<double>(std::clock() - clock) / CLOCKS_PER_SEC;
      std::this_thread::sleep_for(kQuiet);
      const double after = OneDnnRate(product_, kProductSeconds);
      std::this_thread::sleep_for(kQuiet);
      round_seconds += seconds;
      round_product += seconds * (before + after) / 2;
      before = after;
    }
    seconds_.push_back(round_seconds);
    product_rates_.push_back(round_product / round_seconds);
  }

  double processor_seconds() const { return processor_seconds_; }
  const std::vector<double>& seconds() const { return seconds_; }
  /// GFLOP/s of the product beside each prompt, weighted by its batches' time.
  const std::vector<double>& product_rates() const { return product_rates_; }

 private:
  static constexpr double kProductSeconds = 1;
  // Threads of both look for more work for a while.
  static constexpr std::chrono::milliseconds kQuiet{100};

  Engine* engine_;
  OneDnnProduct product_;
  std::vector<double> seconds_, product_rates_;
  double processor_seconds_ = 0;
};

}  // namespace

// One long prompt at a time, each of other tokens, so that nothing is reused.
Result RunEnginePrefill(const Options& options) {
  const auto checkpoint = EngineCheckpoint(options);
  const ModelShape shape(checkpoint);
  const int tokens = options.quick ? 256 : 2048;
  const auto engine = LoadedEngine(checkpoint, {{"max_length", tokens}});
  const auto prompt = [&](uint64_t seed) {
    Request request;
    request.kind = RequestKind::kLoglikelihood;
    request.context_tokens = RandomTokens(tokens, shape.vocab_size, seed);
    request.continuation_tokens = {1};
    return request;
  };
  AnswerAll(engine.get(), {prompt(0)});  // pages and buffers are there from now on
  const OneDnnProduct product = FastestOneDnnProduct();
  Rounds rounds(engine.get(), product);
  const int count = options.quick ? 1 : 7;
  for (int round = 1; round <= count; ++round) rounds.Run(prompt(static_cast<uint64_t>(round)));

  const double gflops = shape.PromptFlops(tokens) / 1e9;
  std::vector<double> rates, ratios;
  for (size_t i = 0; i < rounds.seconds().size(); ++i) {
    rates.push_back(gflops / rounds.seconds()[i]);
    ratios.push_back(rates[i] / rounds.product_rates()[i]);
  }
  Result result;
  result.value = Median(rates);
  result.unit = "GFLOP/s";
  result.baseline = "oneDNN's fastest large product on as many cores, between the batches";
  result.baseline_value = OneDnnVersion().empty() ? 0 : result.value / Median(ratios);
  result.target = 0.7;
  result.details = {{"tokens", tokens},
                    {"tokens_per_s", tokens * result.value / gflops},
                    {"seconds", rounds.seconds()},
                    {"ratios", ratios},
                    {"gflops_of_one_processor", count * gflops / rounds.processor_seconds()},
                    {"onednn", OneDnnVersion()},
                    {"onednn_product", {product.m, product.n, product.k}},
                    {"onednn_type", product.bf16 ? "bf16" : "fp32"},
                    {"onednn_rates", rounds.product_rates()},
                    {"engine", engine->Info().device}};
  if (OneDnnVersion().empty())
    result.details["skipped"] = "built without oneDNN: install libdnnl-dev and build again";
  return result;
}

}  // namespace evald::bench
