#pragma once

#include <vector>

#include "worker/native/config.h"
#include "worker/native/tensor_files.h"

namespace evald::native {

/// A weight and, for layer norms, a bias. Both are empty if a family has no such norm.
struct NormWeights {
  std::vector<float> weight;
  std::vector<float> bias;
  bool present() const { return !weight.empty(); }
};

/// y = x W^T + b. W may be split into several matrices, one below the other.
struct Linear {
  struct Part {
    Matrix matrix;
    std::vector<float> bias;  ///< [matrix.rows], or empty
  };
  std::vector<Part> parts;

  int64_t outputs() const;
  int64_t inputs() const { return parts.front().matrix.columns; }
};

/// One feed-forward part: the matrix before the activation (gate above up, or up alone), and the
/// one after it.
struct FeedForward {
  Linear in;
  Linear down;
};

struct LayerWeights {
  NormWeights attention_norm, attention_after_norm, mlp_norm, mlp_after_norm;
  NormWeights query_norm, key_norm;
  Linear qkv;  ///< three parts, or one packed
  Linear output;
  FeedForward mlp;                   ///< of a layer without experts
  Linear router;                     ///< [experts]
  std::vector<FeedForward> experts;  ///< empty without
};

/// The weights of one checkpoint, used in place; only norms and biases are copied. Immutable; any
/// thread may read.
class ModelWeights {
 public:
  /// Throws Error(kInput) for a broken shard, and for a tensor that is missing, unknown, of another
  /// shape, or of a dtype other than bf16, fp16 or fp32, naming file, tensor, found and expected.
  /// With kComing and kHeaders the values of norms and biases stay zero, and only headers are read.
  /// With kHeaders the weights are for nothing else than this check.
  ModelWeights(const ReadFolder& folder, const ModelConfig& config,
               Contents contents = Contents::kThere);

  const Matrix& embedding() const { return embedding_; }
  const Linear& head() const { return head_; }  ///< [vocab_size][hidden_size]
  const NormWeights& norm() const { return norm_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  uint64_t mapped_bytes() const { return files_.mapped_bytes(); }
  const TensorFiles& files() const { return files_; }

 private:
  Linear Take(const std::vector<std::string>& names, const std::vector<int64_t>& outputs,
              int64_t inputs, bool bias);
  NormWeights TakeNorm(const std::string& name, int64_t size, NormKind kind, double offset);
  FeedForward TakeFeedForward(const std::string& prefix, const ModelConfig& config,
                              const char* gate, const char* up, const char* down, int64_t inner);
  void TakeAttention(const std::string& prefix, const ModelConfig& config, LayerWeights* layer);
  void TakeExperts(const std::string& prefix, const ModelConfig& config, LayerWeights* layer);
  void TakeLayer(int64_t index, const ModelConfig& config);
  void TakeHead(const ModelConfig& config, Contents contents);

  TensorFiles files_;
  Matrix embedding_;
  Linear head_;
  NormWeights norm_;
  std::vector<LayerWeights> layers_;
};

}  // namespace evald::native
