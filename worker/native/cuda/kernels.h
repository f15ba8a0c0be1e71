#pragma once

#include <cstdint>

#include "worker/native/activation.h"
#include "worker/native/config.h"
#include "worker/native/cuda/runtime.h"
#include "worker/native/kernels.h"

/// Kernels of the GPU engine, queued on a stream. Pointers are the device's; matrices lie row by
/// row. The residual stream and all that is added to it are fp32; `type` is that of weights and of
/// all other activations. Each number depends on its own row alone: sums have one fixed order in
/// every batch. No kernel reads or writes past `rows`.
namespace evald::native::cuda {

struct DeviceAnswer;

/// out[row] = the row `tokens[row]` of the embedding. A token below 0 is TokenOfAnswer (device.h),
/// the token of one of `answers`.
struct EmbedArgs {
  WeightType type;
  const void* embedding;  ///< [vocab][width]
  const int32_t* tokens;
  const DeviceAnswer* answers;
  int64_t rows, width;
  float* out;
};
void Embed(const EmbedArgs& args, const Stream& stream);

/// x += addend (if there is one), then out = norm(x). x may be out if out_type is fp32.
struct NormArgs {
  NormKind kind;
  float eps;
  const float* weight;
  const float* bias;    ///< null: none
  float* x;             ///< [rows][width]
  const float* addend;  ///< null: none
  int64_t rows, width;
  void* out;  ///< null: only the sum is computed
  WeightType out_type;
};
void Normalize(const NormArgs& args, const Stream& stream);

/// x += addend (if there is one), then out = x in `type`. For models that multiply the residual
/// stream itself.
void Narrow(WeightType type, float* x, const float* addend, int64_t count, void* out,
            const Stream& stream);

/// y[row][i] += bias[i]
void AddBias(WeightType type, void* y, const float* bias, int64_t rows, int64_t width,
             const Stream& stream);

/// x[i] += y[i]
void Add(float* x, const float* y, int64_t count, const Stream& stream);

/// The layout of a page's keys and values: [layers][2][kv_heads][kPagePositions][head_dim] of
/// `type`.
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

/// The description of a batch's rows, on the device.
struct BatchRows {
  int64_t rows = 0;
  const int32_t* positions = nullptr;  ///< [rows], in their sequences; -1: a padding row
  /// [rows]: index in `pages` at which the table of the row's sequence begins
  const int32_t* tables = nullptr;
  char* const* pages = nullptr;  ///< page tables of all sequences, one after the other
};

/// Adds the bias (if there is one) to each row's queries, keys and values, normalizes (HeadNorm)
/// and rotates them. Keys and values go to their page, queries stay in qkv. Padding rows are left
/// out.
/// A value that is not finite in `kv.type` becomes zeros, its key NaN (Device::StoreKeysAndValues).
struct HeadsArgs {
  BatchRows batch;
  void* qkv;  ///< [rows][(heads + 2 * kv_heads) * head_dim]
  KvLayout kv;
  int64_t layer, heads, rotary_dim;
  /// By key-value head: its queries, its key, its value; otherwise all queries, all keys, all
  /// values
  bool packed;
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
  const float* bias;  ///< the bias of `in`, or null
  int64_t rows, width;
  void* out;
};
void Activate(const ActivateArgs& args, const Stream& stream);

/// out[i] = in[index[i]], rows of `bytes` bytes, a multiple of 2. If index[i] < 0, out[i] is
/// unchanged.
void GatherRows(const void* in, const int32_t* index, int64_t rows, int64_t bytes, void* out,
                const Stream& stream);

/// Chooses the `per_token` largest of softmax(logits[row]), largest first, of equals the first. A
/// row with logits that are not finite gets experts 0, 1, … with NaN.
struct RouteArgs {
  WeightType type;
  const void* logits;  ///< [rows][experts]
  int64_t rows, experts, per_token;
  bool normalize;   ///< the chosen weights are scaled to add up to 1
  int32_t* expert;  ///< [rows][per_token]
  float* weight;    ///< [rows][per_token]
};
void Route(const RouteArgs& args, const Stream& stream);

/// Sorts choices of experts by expert: each choice has a slot. An expert's slots lie beside each
/// other, its rows ascending.
struct GroupArgs {
  const int32_t* expert;  ///< [rows][per_token], each within [0, experts)
  int64_t rows, experts, per_token;
  int32_t* begin;  ///< [experts + 1]: where each expert's slots begin, and where the last one's end
  int32_t* row;    ///< [rows * per_token]: the row of each slot
  int32_t* slot;   ///< [rows][per_token]: the slot of each choice
};
void GroupByExpert(const GroupArgs& args, const Stream& stream);

/// y[slot] = x[row of the slot] times the transposed weights of the slot's expert, with fp32 sums.
/// The bits of a row of y depend on its row of x and its expert alone.
struct ExpertProductArgs {
  WeightType type;          ///< of weights and x
  const void* weights;      ///< [outputs][inputs] of the first expert
  uint64_t weights_stride;  ///< bytes to the next expert's
  const int32_t* begin;     ///< from GroupByExpert
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

/// The wish about a row of logits, and the answer (answer.h).
struct DeviceWish {
  int32_t target = -1;
  int32_t sample = 0;  ///< 0: greedily
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
  double log_largest = 0;  ///< with a target: the log-softmax of the largest
};
/// answers[row] from logits[row]: the log-softmax of the target in double precision, the first of
/// the largest, or the token that Sample of worker/native/sampler.h would choose. Logits without a
/// softmax are answered as in answer.h. `scratch` has AnswerScratchBytes(rows, vocab).
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
