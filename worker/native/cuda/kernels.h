#pragma once

#include <cstdint>

#include "worker/native/activation.h"
#include "worker/native/config.h"
#include "worker/native/cuda/runtime.h"
#include "worker/native/kernels.h"

/// Kernels of the GPU engine, queued on a stream. Pointers are the device's, matrices are row by
/// row. The residual stream and what is added to it are fp32; `type` is that of weights and of all
/// other activations. Each number depends on its own row alone: sums have one fixed order whatever
/// the batch. No kernel reads or writes past `rows`.
namespace evald::native::cuda {

struct DeviceAnswer;

/// out[row] = the row `tokens[row]` of the embedding; a token below 0 is TokenOfAnswer (device.h),
/// that of one of `answers`.
struct EmbedArgs {
  WeightType type;
  const void* embedding;  ///< [vocab][width]
  const int32_t* tokens;
  const DeviceAnswer* answers;
  int64_t rows, width;
  float* out;
};
void Embed(const EmbedArgs& args, const Stream& stream);

/// x += addend (where there is one), then out = norm(x). x may be out, when out_type is fp32.
struct NormArgs {
  NormKind kind;
  float eps;
  const float* weight;
  const float* bias;    ///< null without
  float* x;             ///< [rows][width]
  const float* addend;  ///< null without
  int64_t rows, width;
  void* out;  ///< null: only the sum is wanted
  WeightType out_type;
};
void Normalize(const NormArgs& args, const Stream& stream);

/// x += addend (where there is one), then out = x in `type`, for models that multiply the residual
/// stream itself.
void Narrow(WeightType type, float* x, const float* addend, int64_t count, void* out,
            const Stream& stream);

/// y[row][i] += bias[i]
void AddBias(WeightType type, void* y, const float* bias, int64_t rows, int64_t width,
             const Stream& stream);

/// x[i] += y[i]
void Add(float* x, const float* y, int64_t count, const Stream& stream);

/// Where a page has its keys and values: [layers][2][kv_heads][kPagePositions][head_dim] of `type`.
struct KvLayout {
  WeightType type;
  int64_t layers, kv_heads, head_dim;
  uint64_t head_bytes() const {  ///< keys, or values, of one head of one layer
    return static_cast<uint64_t>(kPagePositions * head_dim) * (type == WeightType::kF32 ? 4 : 2);
  }
  uint64_t page_bytes() const {
    return static_cast<uint64_t>(layers * 2 * kv_heads) * head_bytes();
  }
};

/// What a batch's rows are, on the device.
struct BatchRows {
  int64_t rows = 0;
  const int32_t* positions = nullptr;  ///< [rows], in their sequences; -1: a row that only pads
  const int32_t* tables = nullptr;     ///< [rows]: where in `pages` its sequence's table begins
  char* const* pages = nullptr;        ///< page tables of all sequences, one after the other
};

/// Queries, keys and values of each row are biased (where there is a bias), normalized (HeadNorm)
/// and rotated; keys and values go to their page, queries stay in qkv. Rows that only pad are left
/// out.
struct HeadsArgs {
  BatchRows batch;
  void* qkv;  ///< [rows][(heads + 2 * kv_heads) * head_dim]
  KvLayout kv;
  int64_t layer, heads, rotary_dim;
  bool packed;        ///< by key-value head: its queries, its key, its value; else all of each
  const float* bias;  ///< [qkv width], or null
  HeadNorm norm;
  const float* query_norm;  ///< [head_dim], or [heads * head_dim] for kWhole
  const float* key_norm;
  float eps;
  const float* cosines;  ///< [positions][rotary_dim / 2]
  const float* sines;
};
void PrepareHeads(const HeadsArgs& args, const Stream& stream);

/// out[row] = activation(in[row]), gated: activation(in[row][0..width)) * in[row][width..2 width).
struct ActivateArgs {
  WeightType type;
  Activation activation;
  bool gated;
  const void* in;
  const float* bias;  ///< of `in`, or null
  int64_t rows, width;
  void* out;
};
void Activate(const ActivateArgs& args, const Stream& stream);

/// out[i] = in[index[i]], rows of `bytes` bytes, a multiple of 2. Left as it is where index[i] < 0.
void GatherRows(const void* in, const int32_t* index, int64_t rows, int64_t bytes, void* out,
                const Stream& stream);

/// The `per_token` largest of softmax(logits[row]), the first of equals, largest first. A row with
/// logits that are not finite gets experts 0, 1, … with NaN.
struct RouteArgs {
  WeightType type;
  const void* logits;  ///< [rows][experts]
  int64_t rows, experts, per_token;
  bool normalize;   ///< the chosen weights are made to add up to 1
  int32_t* expert;  ///< [rows][per_token]
  float* weight;    ///< [rows][per_token]
};
void Route(const RouteArgs& args, const Stream& stream);

/// Choices of experts in order of the experts: each has a slot. An expert's slots lie beside each
/// other, its rows ascending.
struct GroupArgs {
  const int32_t* expert;  ///< [rows][per_token], each within [0, experts)
  int64_t rows, experts, per_token;
  int32_t* begin;  ///< [experts + 1]: where each expert's slots begin, and where the last one's end
  int32_t* row;    ///< [rows * per_token]: of each slot
  int32_t* slot;   ///< [rows][per_token]: of each choice
};
void GroupByExpert(const GroupArgs& args, const Stream& stream);

/// y[slot] = x[row of the slot] times the transposed weights of the slot's expert, with fp32 sums.
/// The bits of a row of y depend on its row of x and its expert alone.
struct ExpertProductArgs {
  WeightType type;          ///< of weights and x
  const void* weights;      ///< [outputs][inputs] of the first expert
  uint64_t weights_stride;  ///< bytes to the next expert's
  const int32_t* begin;     ///< of GroupByExpert
  int64_t experts, slots;
  const void* x;       ///< [rows][inputs]
  const int32_t* row;  ///< [slots]; null: each slot has a row of its own
  int64_t outputs, inputs;
  WeightType y_type;  ///< `type` or kF32
  void* y;            ///< [slots][outputs]
};
void MultiplyExperts(const ExpertProductArgs& args, const Stream& stream);

/// out[row] = the sum of weight[row][i] * in[slot[row][i]], i ascending.
struct CombineArgs {
  const float* in;  ///< [slots][width]
  const int32_t* slot;
  const float* weight;
  int64_t rows, per_token, width;
  float* out;  ///< [rows][width]
};
void Combine(const CombineArgs& args, const Stream& stream);

/// What is wished of a row of logits, and what comes of it (answer.h).
struct DeviceWish {
  int32_t target = -1;
  int32_t sample = 0;  ///< else greedily
  int32_t top_k = 0;   ///< 0: all
  float padding = 0;
  double temperature = 1;
  double top_p = 1;
  double uniform = 0;
};
struct DeviceAnswer {
  int32_t token = 0;
  int32_t defined = 1;
  double log_probability = 0;
};
/// answers[row] from logits[row]: log-softmax of the target in double precision, the first of the
/// largest, or the token that worker/native/sampler.h's Sample would choose. Of logits without a
/// softmax as in answer.h. `scratch` has AnswerScratchBytes(rows, vocab).
struct AnswerArgs {
  const float* logits;  ///< [rows][vocab]
  int64_t rows, vocab;
  const DeviceWish* wishes;
  DeviceAnswer* answers;
  void* scratch;
};
uint64_t AnswerScratchBytes(int64_t rows, int64_t vocab);
void AnswerRows(const AnswerArgs& args, const Stream& stream);

}  // namespace evald::native::cuda
