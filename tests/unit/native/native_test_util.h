#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "tests/unit/support/temporary_folder.h"
#include "worker/engine/engine.h"
#include "worker/native/cpu.h"
#include "worker/native/cpu_device.h"
#include "worker/native/kv_cache.h"
#include "worker/native/model.h"
#include "worker/native/scheduler.h"
#include "worker/native/thread_pool.h"
#include "worker/native/weights.h"

namespace evald::native {

/// Names of the checkpoints under tests/golden/native (tests/oracle/native_golden.py).
std::vector<std::string> GoldenNames();
std::filesystem::path GoldenPath(const std::string& name);
Json Golden(const std::string& name);
/// logits.bin: fp32, in the order in which the prompts of golden.json list their positions.
std::vector<float> GoldenLogits(const std::string& name);

/// The type of the checkpoint's stored tensors: "BF16", "F16" or "F32".
std::string StoredType(const std::string& name);

/// AvailableKernels, and avx512_bf16 if the processor has it.
std::vector<std::string> AllKernels();

/// The parts of a safetensors file, to be changed and written again.
struct Tensors {
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    std::string data;
  };
  std::map<std::string, Tensor> tensors;

  static Tensors Read(const std::filesystem::path& path);
  void Write(const std::filesystem::path& path) const;
};

/// A copy of a golden checkpoint in a folder of its own. The destructor removes it.
class CheckpointCopy {
 public:
  explicit CheckpointCopy(const std::string& name);
  const std::filesystem::path& path() const { return folder_.path(); }

  /// Sets a key of config.json; null removes it.
  void SetConfig(const std::string& key, const Json& value);
  /// Changes each tensor of model.safetensors whose name contains `part`. There must be at least
  /// one.
  void ChangeTensors(const std::string& part, const std::function<void(Tensors::Tensor*)>& change);
  void Clear(const std::string& part);  ///< sets such tensors to zero
  /// Makes the numbers of a token's embedding NaN. Not for tied embeddings, which also give the
  /// logits.
  void MakeEmbeddingNan(int32_t token);
  void Write(const std::string& file, const std::string& content);

 private:
  TemporaryFolder folder_;
};

/// The model below the engine, for checks of logits.
struct BareModel {
  explicit BareModel(const std::filesystem::path& directory, const std::string& kernels = "auto",
                     int threads = 1);
  /// Logits ([vocab_size]) after each of the given positions, computed `chunk` rows at a time.
  std::vector<std::vector<float>> Logits(const std::vector<int32_t>& tokens,
                                         const std::vector<int64_t>& positions, int64_t chunk);

  ModelConfig config;
  ModelWeights weights;
  ThreadPool pool;
  CpuDevice device;
  KvCache cache;
  Model model;
};

/// The distance of logits from the golden ones.
struct Spread {
  double largest = 0;
  double rms = 0;  ///< the root of the mean square
};
Spread LogitsSpread(const std::string& golden, BareModel* model, int64_t chunk = 256);
/// Only the largest difference.
double LogitsError(const std::string& golden, BareModel* model, int64_t chunk = 256);

/// The same for a changed copy of the checkpoint.
double ErrorOf(const std::string& golden, const CheckpointCopy& copy);
/// An error that no check accepts: a hundred times the limit of the golden check.
inline constexpr double kFar = 1e-2;

std::unique_ptr<Engine> LoadedEngine(const std::filesystem::path& directory,
                                     const Json& settings = Json::object(), int threads = 1,
                                     uint64_t seed = 1234);

/// Submits all requests as the engine has room. Their tags are their indices. Returns the answers
/// in the order of the requests.
std::vector<Generation> AnswerAll(Engine* engine, const std::vector<Request>& requests);

/// An answer with its tokens.
struct Watched {
  Generation generation;
  std::vector<TokenReport> reports;
};
/// Submits all requests at once, with a watch for so many of the likeliest tokens. Returns the
/// answers in the order of the requests.
std::vector<Watched> WatchAll(Engine* engine, const std::vector<Request>& requests, int top);

/// The same as lines with all digits, in the order of the requests' keys.
std::vector<std::string> AnswerLines(Engine* engine, const std::vector<Request>& requests);

/// Generations and scores of all kinds, with shared prefixes.
std::vector<Request> MixedRequests();

Request GenerateRequest(const std::string& context, const std::vector<std::string>& until,
                        int max_gen_toks);
Request ScoreRequest(const std::string& context, const std::string& continuation);

/// The error of Load or, if Load works, of the request; "" if there is none.
std::string LoadError(const std::filesystem::path& directory);
std::string SubmitError(Engine* engine, Request request);

}  // namespace evald::native
