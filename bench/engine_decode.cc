#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/engine_bench.h"
#include "bench/run_evald.h"
#include "worker/native/aligned.h"

namespace evald::bench {
namespace {

// Adds up `lines` cache lines in `streams` equal parts side by side and prefetches. A product with
// one row uses the weights' memory in the same way.
uint64_t ReadLines(const uint64_t* memory, size_t lines, size_t streams) {
  constexpr size_t kWords = 8, kAhead = 32 * kWords;
  const size_t part = lines / streams * kWords;
  uint64_t sums[kWords] = {};
  for (size_t i = 0; i < part; i += kWords) {
    for (size_t s = 0; s < streams; ++s) {
      const uint64_t* line = memory + s * part + i;
      __builtin_prefetch(line + kAhead, 0, 2);
      for (size_t w = 0; w < kWords; ++w) sums[w] += line[w];
    }
  }
  uint64_t sum = 0;
  for (const uint64_t s : sums) sum += s;
  return sum;
}

// Bytes per second of reading memory on all cores, the best of a few ways.
class Memory {
 public:
  explicit Memory(size_t bytes) : words_(bytes / sizeof(uint64_t), 1) {}

  double Measure() {
    double best = 0;
    for (const size_t streams : {size_t{1}, size_t{2}, size_t{4}, size_t{8}})
      best = std::max(best, Once(streams));
    return best;
  }

 private:
  double Once(size_t streams) {
    const size_t threads = std::thread::hardware_concurrency();
    const size_t share = words_.size() / threads / 8 * 8;
    std::vector<uint64_t> sums(threads);
    std::vector<std::thread> readers;
    const int64_t begin = MonotonicMicros();
    for (size_t t = 0; t < threads; ++t) {
      readers.emplace_back(
          [&, t] { sums[t] = ReadLines(words_.data() + t * share, share / 8, streams); });
    }
    for (std::thread& reader : readers) reader.join();
    const double seconds = static_cast<double>(MonotonicMicros() - begin) / 1e6;
    for (const uint64_t sum : sums) checksum_ += sum;
    return static_cast<double>(share * threads * sizeof(uint64_t)) / seconds;
  }

  std::vector<uint64_t, native::AlignedAllocator<uint64_t>>
      words_;                          // in large pages, so that memory alone is the limit
  std::atomic<uint64_t> checksum_{0};  // makes the compiler keep the sums
};

}  // namespace

// The time of a generation minus that of a single token, for each further token. Measurements take
// turns with reading memory.
Result RunEngineDecode(const Options& options) {
  const auto checkpoint = EngineCheckpoint(options);
  const ModelShape shape(checkpoint);
  const int prompt = 32, tokens = options.quick ? 8 : 64;
  const auto engine = LoadedEngine(checkpoint, {{"max_length", prompt + tokens + 1}});
  const auto generate = [&](uint64_t seed, int count) {
    Request request;
    request.context_tokens = RandomTokens(prompt, shape.vocab_size, seed);
    request.sampling.max_gen_toks = count;
    return AnswerAll(engine.get(), {request}).seconds;
  };
  Memory memory(options.quick ? size_t{64} << 20 : size_t{1} << 30);
  generate(0, 2);
  std::vector<double> rates, bytes_per_s;
  for (uint64_t round = 1; round <= (options.quick ? 1 : 7); ++round) {
    const double first = generate(2 * round, 1);
    rates.push_back(tokens / (generate(2 * round + 1, tokens + 1) - first));
    bytes_per_s.push_back(memory.Measure());
  }
  Result result;
  result.value = Median(rates);
  result.unit = "tokens/s";
  result.baseline =
      "what the measured memory-read bandwidth allows: weights in bf16, keys and values, once a "
      "token";
  result.baseline_value = Median(bytes_per_s) / shape.TokenBytes(prompt + tokens / 2.0);
  result.target = 0.85;
  result.details = {{"bytes_per_token", shape.TokenBytes(prompt + tokens / 2.0)},
                    {"read_gb_per_s", Median(bytes_per_s) / 1e9},
                    {"rates", rates},
                    {"read_rates", bytes_per_s},
                    {"engine", engine->Info().device}};
  return result;
}

}  // namespace evald::bench
