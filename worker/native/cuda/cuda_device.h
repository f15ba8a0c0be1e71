#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "evald/json.h"
#include "worker/native/config.h"
#include "worker/native/cuda/batch.h"
#include "worker/native/cuda/decode_graphs.h"
#include "worker/native/cuda/device_weights.h"
#include "worker/native/cuda/expert_mixer.h"
#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/page_slabs.h"
#include "worker/native/cuda/products.h"
#include "worker/native/cuda/row_buffers.h"
#include "worker/native/cuda/runtime.h"
#include "worker/native/device.h"
#include "worker/native/rope.h"

namespace evald::native::cuda {

struct CudaOptions {
  /// Rows of a batch. Memory for so many is taken at once; larger batches grow it.
  int64_t rows_max = 8192;
  bool graphs = true;  ///< batches of single tokens are captured and replayed
  bool ahead = true;   ///< Device::looks_ahead
  /// The most memory for attention's partial results. A batch that needs more is attended in parts.
  uint64_t attention_scratch_bytes = uint64_t{2} << 30;
};

/// The products of a model's batches with up to `rows` rows.
std::vector<ProductShape> ProductsOf(const ModelConfig& config, WeightType type, int64_t rows);

/// Computes in the weights' type with fp32 sums and an fp32 residual stream, on the current GPU.
/// Operations are queued on one stream; only Collect and Logits wait. So the next batch is prepared
/// while one computes, and tokens from its answers are read on the device.
///
/// Fused: kHidden += kOut with the norm after it; biases, head norms, rotation and storing; the
/// feed-forward part's bias with its activation.
///
/// A batch in which each segment is one token whose logits are wanted is padded to a bucket of
/// rows. When a bucket comes again, its operations are captured, and from then on replayed. Growing
/// any memory drops the graphs. After a capture that failed, no batch is captured any more
/// (Recover). None of this changes a bit of the results.
///
/// Errors are DeviceError; after one that is not sticky the next Begin starts afresh.
class CudaDevice : public Device {
 public:
  /// All arguments must outlive the device, and `weights` must be of this config. The weights'
  /// content may change between batches (DeviceWeights::Rebind). Chooses products, which takes
  /// seconds the first time.
  CudaDevice(const ModelConfig& config, const DeviceWeights* weights, Products* products,
             const CudaOptions& options);
  ~CudaDevice() override;

  /// Waits for all queued operations. Needed before memory that they may use goes or changes.
  void Drain();

  /// Memory that the device may still take, apart from pages.
  uint64_t reserve_bytes() const;
  /// Products, graphs and memory, for reports.
  Json Report() const;

  uint64_t page_bytes() const override { return layout_.page_bytes(); }
  Page* NewPage() override;
  void DeletePage(Page* page) override;
  void CopyPage(const Page* from, Page* to) override;

  void Begin(const std::vector<Segment>& segments) override;
  void Embed(const Matrix& embedding) override;
  void Normalize(const NormWeights& norm, Rows from, Rows to) override;
  void Multiply(const Linear& linear, Rows from, Rows to) override;
  void NormalizeHeads(const NormWeights& query, const NormWeights& key) override;
  void Rotate(int64_t layer) override;
  void StoreKeysAndValues(int64_t layer) override;
  int64_t KeepWanted() override;
  void Attend(int64_t layer, int64_t window) override;
  void Activate() override;
  void MixExperts(const LayerWeights& layer) override;
  void AddOut() override;
  void Ask(const Linear& head, const std::vector<Wish>& wishes) override;
  std::vector<Answer> Collect() override;
  void Forget() override { asked_ = 0; }
  bool looks_ahead() const override { return options_.ahead; }
  std::vector<float> Logits(const Linear& head) override;
  bool Recover() override;

 private:
  enum class Mode { kDirect, kCapturing, kReplaying };
  /// Pinned memory of batches on their way to the device, used in turns.
  struct Staging {
    Memory memory;
    Event sent;
  };

  /// A row whose wish asks for more than a DeviceAnswer holds.
  struct Want {
    int64_t row = 0;
    int top = TokenWatch::kNoLogProbabilities;  ///< Wish::top
    int32_t target = -1;                        ///< Wish::target
    bool logits = false;                        ///< the row's logits come to the host
    bool returned = false;                      ///< and are the answer's (Wish::logits)
  };

  /// Pinned memory of questions and answers, used in turns.
  struct Question {
    Memory wishes, answers;
    Memory logits;  ///< of the rows in `wants` with `logits`, one after the other
    Event answered;
    size_t count = 0;
    std::vector<Want> wants;  ///< in order of rows
  };

  BatchLimits Limits() const;
  bool Captured(const std::vector<Segment>& segments) const;
  void Grow(Memory* memory, uint64_t bytes);
  void TakeRows(int64_t rows);
  void TakeAnswers(int64_t rows);
  static std::vector<Want> WantsOf(const std::vector<Wish>& wishes);
  void AddWanted(const Question& question, std::vector<Answer>* answers) const;
  void TakeRope(int64_t positions);
  void Upload();
  void ChooseMode(bool captured);
  void FinishOperations();
  bool Idle() const { return mode_ == Mode::kReplaying || rows_->padded == 0; }
  const void* Input(Rows from);
  void FlushOut();
  BatchRows RowsFrom(int64_t first_row, int64_t rows) const;
  /// Calls done(first row, rows) for each block of rows, once its logits are in logits_.
  void HeadBlocks(const Linear& head, const std::function<void(int64_t, int64_t)>& done);

  const ModelConfig& config_;
  const DeviceWeights* weights_;
  Products* products_;
  CudaOptions options_;
  KvLayout layout_;
  bool packed_;
  uint64_t partial_bytes_;  ///< bytes of one partial result in attention's scratch
  uint64_t scratch_max_;
  Stream stream_;
  PageSlabs slabs_;
  RopeTable rope_;

  RowBuffers buffers_;
  int64_t rows_taken_ = 0;
  int64_t rope_positions_ = 0;
  int64_t logits_rows_ = 0;  ///< rows in one block of logits
  Memory upload_;            ///< the batch's data
  Memory cosines_, sines_, scratch_, logits_, answer_scratch_, wishes_, answers_;
  Staging staging_[2];
  int next_staging_ = 0;
  Question questions_[2];
  int next_question_ = 0;  ///< the next question to be asked
  int asked_ = 0;          ///< questions before that one that have not been collected
  ExpertMixer experts_;
  DecodeGraphs graphs_;

  Mode mode_ = Mode::kDirect;
  BatchPlan plan_;
  const RowSet* rows_ = &plan_.all();  ///< all rows of the batch, or those that are kept
  bool out_pending_ = false;           ///< kHidden has yet to get kOut
  const float* query_norm_ = nullptr;
  const float* key_norm_ = nullptr;
  const float* qkv_bias_ = nullptr;
  const float* inner_bias_ = nullptr;
};

}  // namespace evald::native::cuda
