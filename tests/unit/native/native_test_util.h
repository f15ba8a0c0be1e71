#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "worker/engine.h"
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
/// logits.bin: fp32, as the prompts of golden.json list their positions.
std::vector<float> GoldenLogits(const std::string& name);

/// How the checkpoint's tensors are stored: "BF16", "F16" or "F32".
std::string StoredType(const std::string& name);

/// AvailableKernels, and avx512_bf16 where the processor has it.
std::vector<std::string> AllKernels();

/// A safetensors file taken apart, to be changed and written again.
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

/// A copy of a golden checkpoint in a folder of its own, removed when destroyed.
class CheckpointCopy {
 public:
  explicit CheckpointCopy(const std::string& name);
  ~CheckpointCopy();
  const std::filesystem::path& path() const { return path_; }

  /// Sets a key of config.json; null removes it.
  void SetConfig(const std::string& key, const Json& value);
  /// Changes each tensor of model.safetensors whose name contains `part`; there must be one.
  void ChangeTensors(const std::string& part, const std::function<void(Tensors::Tensor*)>& change);
  void Clear(const std::string& part);  ///< makes such tensors zero
  void Write(const std::string& file, const std::string& content);

 private:
  std::filesystem::path path_;
};

/// The model below the engine, for looking at logits.
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

/// How far logits are from the golden ones.
struct Spread {
  double largest = 0;
  double rms = 0;  ///< the root of the mean square
};
Spread LogitsSpread(const std::string& golden, BareModel* model, int64_t chunk = 256);
/// The largest difference alone.
double LogitsError(const std::string& golden, BareModel* model, int64_t chunk = 256);

/// The same of a changed copy of the checkpoint.
double ErrorOf(const std::string& golden, const CheckpointCopy& copy);
/// An error that no check lets through: a hundred times what the golden check allows.
inline constexpr double kFar = 1e-2;

std::unique_ptr<Engine> LoadedEngine(const std::filesystem::path& directory,
                                     const Json& settings = Json::object(), int threads = 1,
                                     uint64_t seed = 1234);

/// Submits all requests (tags are their indices) as the engine has room, and returns the answers in
/// order of the requests.
std::vector<Generation> AnswerAll(Engine* engine, const std::vector<Request>& requests);

/// The same as lines with every digit, in order of the requests' keys.
std::vector<std::string> AnswerLines(Engine* engine, const std::vector<Request>& requests);

/// Generations and scores of all kinds, with shared prefixes.
std::vector<Request> MixedRequests();

Request GenerateRequest(const std::string& context, const std::vector<std::string>& until,
                        int max_gen_toks);
Request ScoreRequest(const std::string& context, const std::string& continuation);

/// What Load (or, if that works, the request) throws; "" if nothing.
std::string LoadError(const std::filesystem::path& directory);
std::string SubmitError(Engine* engine, Request request);

}  // namespace evald::native
