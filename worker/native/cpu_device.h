#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "worker/native/aligned.h"
#include "worker/native/config.h"
#include "worker/native/device.h"
#include "worker/native/kernels.h"
#include "worker/native/page_layout.h"
#include "worker/native/rope.h"
#include "worker/native/thread_pool.h"

namespace evald::native {

/// Computes in fp32 with the kernels of one instruction set and a thread pool. Reads the weights
/// where they are mapped.
class CpuDevice : public Device {
 public:
  /// The three arguments must outlive the device.
  CpuDevice(const ModelConfig& config, const Kernels& kernels, ThreadPool* pool);

  uint64_t page_bytes() const override { return layout_.bytes(); }
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
  std::vector<Answer> Collect() override { return std::exchange(answers_, {}); }
  void Forget() override { answers_.clear(); }
  std::vector<float> Logits(const Linear& head) override;

 private:
  struct Row {
    int32_t token;
    int64_t position;
    Page* const* pages;  ///< of its sequence
  };
  /// Offsets of the heads of one key-value group within a row of kQkv, in floats.
  struct HeadOffsets {
    int64_t query, key, value;
  };
  /// One stretch of a row of logits. The stretches are the same for any number of threads.
  struct Stretch {
    float maximum;
    bool finite;
    double sum_exp;
  };
  struct Choice {
    int64_t row;
    float weight;
  };

  float* rows(Rows rows) { return buffers_[static_cast<size_t>(rows)].data(); }
  float* Reserve(Rows rows, int64_t width);
  HeadOffsets Offsets(int64_t head) const;
  void NormalizeRow(const NormWeights& norm, const float* x, int64_t width, float* out) const;
  void ActivateRows(const float* in, int64_t count, int64_t width, float* out);
  const float* Packed(const float* x, int64_t count, int64_t inputs, WeightType type);
  void Multiply(const Linear& linear, const float* x, int64_t count, float* y);
  void AttendTask(int64_t first, int64_t end, int64_t head, int64_t layer, int64_t window,
                  int thread);
  std::vector<std::vector<Choice>> ChooseExperts(const LayerWeights& layer);
  void MultiplyByHead(const Linear& head, const float* x, int64_t count, float* logits);
  void AnswerBlock(const Wish* wishes, int64_t count, Answer* answers);

  const ModelConfig& config_;
  PageLayout layout_;
  const Kernels& kernels_;
  ThreadPool* pool_;
  RopeTable rope_;
  std::optional<RopeTable> local_rope_;
  bool packed_;

  std::vector<Segment> segments_;  ///< without the dropped rows
  std::vector<Row> rows_;
  std::array<Floats, 7> buffers_;  ///< by Rows
  std::vector<Answer> answers_;
  Floats logits_;
  std::array<Floats, 3> packed_rows_;  ///< of the current product, by WeightType
  Floats gathered_, expert_inner_, expert_activated_, expert_out_;
  std::vector<Floats> scratch_;                      ///< per thread
  std::vector<std::vector<AttendRow>> attend_rows_;  ///< per thread
};

}  // namespace evald::native
