#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/lease.h"
#include "checkpoint/safetensors.h"
#include "worker/native/config.h"
#include "worker/native/kernels.h"

namespace evald::native {

/// A matrix [rows][columns] that lies in a mapped file, and its bias ([rows], or empty).
struct Matrix {
  const char* data = nullptr;
  WeightType type = WeightType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> bias;
};

struct LayerWeights {
  std::vector<float> attention_norm, mlp_norm;  ///< [hidden_size]
  Matrix query, key, value, output;
  Matrix gate, up, down;
};

/// The weights of one checkpoint, used where they lie: the shards are mapped shared and read-only,
/// so that all workers of a host use the same pages. Only norms and biases are copied. Holds the
/// folder's lease as long as it lives. Immutable; any thread may read.
class LlamaWeights {
 public:
  /// Throws Error(kInput) for a broken shard, a tensor that is missing, unknown, of another shape
  /// or of a dtype that is not bf16, fp16 or fp32, naming file, tensor, found and expected.
  LlamaWeights(const std::filesystem::path& directory, const LlamaConfig& config);

  const Matrix& embedding() const { return embedding_; }
  const Matrix& head() const { return head_; }  ///< [vocab_size][hidden_size]
  const std::vector<float>& norm() const { return norm_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  uint64_t mapped_bytes() const;

 private:
  struct Located {
    const TensorInfo* info = nullptr;
    size_t shard = 0;
  };
  struct Shard {
    std::string name;  ///< the whole path, for errors
    MappedFile file;
    SafetensorsHeader header;
  };

  void OpenShards(const std::filesystem::path& directory);
  void ReadLayer(int64_t index, const LlamaConfig& config);
  void ReadHead(const LlamaConfig& config);
  const Located& Find(const std::string& name, const std::vector<int64_t>& shape);
  Matrix ReadMatrix(const std::string& name, int64_t rows, int64_t columns, bool bias);
  std::vector<float> ReadVector(const std::string& name, int64_t size);
  void CheckNothingLeft() const;

  std::string directory_;
  StagedLease lease_;
  std::vector<Shard> shards_;
  std::map<std::string, Located> tensors_;  ///< emptied as they are read
  std::map<std::string, Located> used_;
  Matrix embedding_;
  Matrix head_;
  std::vector<float> norm_;
  std::vector<LayerWeights> layers_;
};

}  // namespace evald::native
