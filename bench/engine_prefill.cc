#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/engine_bench.h"
#include "bench/run_evald.h"
#include "worker/native/cpu.h"

namespace evald::bench {
namespace {

// Times the product between any two batches, for about a third of a batch's time: the machine's
// other load changes within seconds.
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
  /// GFLOP/s of the product measured beside each prompt, weighted by the time of the prompt's
  /// batches.
  const std::vector<double>& product_rates() const { return product_rates_; }

 private:
  static constexpr double kProductSeconds = 1;
  // The threads of the engine and of the product look for more work for a while.
  static constexpr std::chrono::milliseconds kQuiet{100};

  Engine* engine_;
  OneDnnProduct product_;
  std::vector<double> seconds_, product_rates_;
  double processor_seconds_ = 0;
};

// The engine with one of its kernels.
struct Contender {
  Contender(const Options& options, int tokens, const std::string& kernels,
            const OneDnnProduct& product)
      : name(kernels),
        engine(LoadedEngine(EngineCheckpoint(options),
                            {{"max_length", tokens}, {"kernels", kernels}})),
        rounds(engine.get(), product) {}

  std::vector<double> Rates(double gflops) const {
    std::vector<double> rates;
    for (const double seconds : rounds.seconds()) rates.push_back(gflops / seconds);
    return rates;
  }
  std::vector<double> Ratios(double gflops) const {
    std::vector<double> ratios = Rates(gflops);
    for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= rounds.product_rates()[i];
    return ratios;
  }
  Json Details(double gflops) const {
    return {{"gflops", Median(Rates(gflops))},
            {"ratio", Median(Ratios(gflops))},
            {"seconds", rounds.seconds()},
            {"ratios", Ratios(gflops)},
            {"onednn_rates", rounds.product_rates()},
            {"gflops_of_one_processor",
             static_cast<double>(rounds.seconds().size()) * gflops / rounds.processor_seconds()},
            {"engine", engine->Info().device}};
  }

  std::string name;
  std::unique_ptr<Engine> engine;
  Rounds rounds;
};

}  // namespace

// Evaluates one long prompt at a time. Each has other tokens, so nothing is reused. If the
// processor multiplies bf16, both of the engine's kernels take turns, and the faster one is the
// result.
Result RunEnginePrefill(const Options& options) {
  const ModelShape shape(EngineCheckpoint(options));
  const int tokens = options.quick ? 256 : 2048;
  const auto prompt = [&](uint64_t seed) {
    Request request;
    request.kind = RequestKind::kLoglikelihood;
    request.context_tokens = RandomTokens(tokens, shape.vocab_size, seed);
    request.continuation_tokens = {1};
    return request;
  };
  const OneDnnProduct product = FastestOneDnnProduct();
  std::vector<std::unique_ptr<Contender>> contenders;
  contenders.push_back(std::make_unique<Contender>(options, tokens, "auto", product));
  if (native::HasBf16Products())
    contenders.push_back(std::make_unique<Contender>(options, tokens, "avx512_bf16", product));
  for (const auto& each : contenders)
    AnswerAll(each->engine.get(), {prompt(0)});  // pages and buffers exist from now on
  const int count = options.quick ? 1 : 7;
  for (int round = 1; round <= count; ++round) {
    for (const auto& each : contenders) each->rounds.Run(prompt(static_cast<uint64_t>(round)));
  }

  const double gflops = shape.PromptFlops(tokens) / 1e9;
  Result result;
  result.details = {{"tokens", tokens},
                    {"onednn", OneDnnVersion()},
                    {"onednn_product", {product.m, product.n, product.k}},
                    {"onednn_type", product.bf16 ? "bf16" : "fp32"}};
  for (const auto& each : contenders) {
    const Json details = each->Details(gflops);
    result.details["kernels"][each->name] = details;
    if (details["gflops"].get<double>() <= result.value) continue;
    result.value = details["gflops"].get<double>();
    result.baseline_value =
        OneDnnVersion().empty() ? 0 : result.value / details["ratio"].get<double>();
    result.details["fastest"] = each->name;
  }
  result.unit = "GFLOP/s";
  result.baseline = "oneDNN's fastest large product on as many cores, between the batches";
  result.target = 0.7;
  result.details["tokens_per_s"] = tokens * result.value / gflops;
  if (OneDnnVersion().empty())
    result.details["skipped"] = "built without oneDNN: install libdnnl-dev and build again";
  return result;
}

}  // namespace evald::bench
