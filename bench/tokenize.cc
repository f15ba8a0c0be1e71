// MB/s of one core that encodes mixed text, against the Hugging Face tokenizers library.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "base/file.h"
#include "base/jsonl.h"
#include "bench/bench.h"
#include "bench/bpe_training.h"
#include "bench/run_evald.h"
#include "bench/text_corpus.h"
#include "evald/error.h"
#include "tokenizer/tokenizer.h"

namespace evald::bench {
namespace {

constexpr uint64_t kTrainingSeed = 1;
constexpr uint64_t kMeasuredSeed = 2;
constexpr int kRounds = 2;

/// evald's speed over the library's, for all kinds together, at the last measurement of both. For
/// hosts without the library; `details` says so.
constexpr double kRecordedRatio = 8.7;
constexpr const char* kRecordedWith =
    "tokenizers 0.23.3 on one thread, its ratio recorded 2026-11-21 on an Intel Xeon at 2.5 GHz";

/// Prints {"seconds", "tokens", "crc", "version"}. The seconds are the processor's, of one thread
/// for all lines: the better of encode for each line and of encode_batch. Each gets a new
/// tokenizer, since a tokenizer's cache remembers words.
constexpr const char* kBaselineScript = R"(
import json, os, sys, time, zlib
from array import array
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import tokenizers
lines = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
def measure(encode):
    tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
    start = time.process_time()
    encodings = encode(tokenizer)
    return time.process_time() - start, encodings
each, encodings = measure(lambda t: [t.encode(line, add_special_tokens=False) for line in lines])
batch, _ = measure(lambda t: t.encode_batch(lines, add_special_tokens=False))
crc = tokens = 0
for encoding in encodings:
    ids = encoding.ids
    tokens += len(ids)
    crc = zlib.crc32(array("i", ids).tobytes(), crc)
print(json.dumps({"seconds": min(each, batch), "each": each, "batch": batch, "tokens": tokens, "crc": crc,
                  "version": tokenizers.__version__}))
)";

struct Encoded {
  double seconds = 0;
  uint64_t tokens = 0;
  uint64_t crc = 0;
};

// Encodes with a new tokenizer, which remembers no words.
Encoded EncodeAll(const std::string& json, const std::vector<std::string>& lines) {
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::Parse(json, "tokenizer.json");
  std::vector<std::vector<int32_t>> encoded(lines.size());
  const std::clock_t start = std::clock();
  for (size_t i = 0; i < lines.size(); ++i) encoded[i] = tokenizer->Encode(lines[i], false);
  Encoded out;
  out.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  for (const std::vector<int32_t>& ids : encoded) {
    out.tokens += ids.size();
    if (ids.empty()) continue;  // crc32 of no bytes at a null pointer would start anew
    out.crc = crc32(out.crc, reinterpret_cast<const Bytef*>(ids.data()),
                    static_cast<uInt>(ids.size() * sizeof(int32_t)));
  }
  return out;
}

class Baseline {
 public:
  explicit Baseline(const std::filesystem::path& scratch)
      : script_(WriteText(scratch / "baseline.py", kBaselineScript)),
        lines_(scratch / "lines.jsonl") {
    const char* configured = std::getenv("EVALD_BENCH_PYTHON");
    python_ = configured == nullptr ? "python3" : configured;
    try {
      version_ =
          RunCommand({python_, "-c", "import tokenizers; print(tokenizers.__version__, end='')"})
              .output;
    } catch (const Error&) {
      version_.clear();
    }
  }

  bool exists() const { return !version_.empty(); }
  const std::string& version() const { return version_; }

  void SetLines(const std::vector<std::string>& lines) const {
    std::string text;
    for (const std::string& line : lines) text += ToLine(line) + "\n";
    WriteText(lines_, text);
  }
  Json Run(const std::filesystem::path& tokenizer) const {
    return ParseJson(RunCommand({python_, script_, tokenizer, lines_}).output,
                     "the baseline's answer");
  }

 private:
  std::filesystem::path script_;
  std::filesystem::path lines_;
  std::string python_;
  std::string version_;
};

struct Measured {
  double own_seconds = 0;
  double baseline_seconds = 0;
  uint64_t tokens = 0;
};

// Measures A B A B. Throws Error(kInternal) if the two do not give the same tokens.
Measured Measure(TokenizerKind kind, const std::string& json, const std::vector<std::string>& lines,
                 const Baseline& baseline, const std::filesystem::path& scratch) {
  const std::filesystem::path file = WriteText(scratch / NameOf(kind) / "tokenizer.json", json);
  Measured out;
  for (int round = 0; round < kRounds; ++round) {
    const Encoded own = EncodeAll(json, lines);
    out.own_seconds += own.seconds;
    out.tokens = own.tokens;
    if (!baseline.exists()) continue;
    const Json answer = baseline.Run(file);
    out.baseline_seconds += answer["seconds"].get<double>();
    if (answer["tokens"].get<uint64_t>() != own.tokens ||
        answer["crc"].get<uint64_t>() != own.crc) {
      throw Error(ErrorKind::kInternal,
                  fmt::format("{}: {} tokens with CRC {:x}, tokenizers {} gives {}", NameOf(kind),
                              own.tokens, own.crc, baseline.version(), ToLine(answer)));
    }
  }
  return out;
}

}  // namespace

Result RunTokenize(const Options& options) {
  const uint64_t training_bytes = options.quick ? 300'000 : 16'000'000;
  const uint64_t measured_bytes = options.quick ? 200'000 : 6'000'000;
  const size_t merges = options.quick ? 2'000 : 48'000;
  const std::vector<std::string> training =
      MixedCorpus(kTrainingSeed, training_bytes, options.data_dir);
  const std::vector<std::string> lines =
      MixedCorpus(kMeasuredSeed, measured_bytes, options.data_dir);
  double megabytes = 0;
  for (const std::string& line : lines) megabytes += static_cast<double>(line.size()) / 1e6;
  const Baseline baseline(options.scratch);
  baseline.SetLines(lines);

  double own_seconds = 0, baseline_seconds = 0;
  Json kinds = Json::object();
  for (const TokenizerKind kind : {TokenizerKind::kLlama3, TokenizerKind::kQwen2,
                                   TokenizerKind::kGpt2, TokenizerKind::kLlama2}) {
    const std::string json = TrainTokenizer(kind, training, merges);
    const Measured measured = Measure(kind, json, lines, baseline, options.scratch);
    own_seconds += measured.own_seconds;
    baseline_seconds += measured.baseline_seconds;
    kinds[NameOf(kind)] = {{"mb_per_s", kRounds * megabytes / measured.own_seconds},
                           {"tokens", measured.tokens}};
    if (baseline.exists()) {
      kinds[NameOf(kind)]["baseline_mb_per_s"] = kRounds * megabytes / measured.baseline_seconds;
      kinds[NameOf(kind)]["ratio"] = measured.baseline_seconds / measured.own_seconds;
    }
  }

  Result result;
  result.unit = "MB/s";
  result.target = 2;
  result.value = kRounds * static_cast<double>(kinds.size()) * megabytes / own_seconds;
  if (baseline.exists()) {
    result.baseline_value =
        kRounds * static_cast<double>(kinds.size()) * megabytes / baseline_seconds;
    result.baseline =
        fmt::format("tokenizers {} on one thread, same run, same tokens", baseline.version());
  } else {
    result.baseline_value = result.value / kRecordedRatio;
    result.baseline =
        fmt::format("{} (set EVALD_BENCH_PYTHON to a Python that has the package)", kRecordedWith);
  }
  result.details = {{"kinds", kinds},
                    {"text_mb", megabytes},
                    {"lines", lines.size()},
                    {"merges", merges},
                    {"rounds", kRounds},
                    {"baseline_measured", baseline.exists()},
                    {"real_text", std::filesystem::exists(options.data_dir)}};
  return result;
}

}  // namespace evald::bench
