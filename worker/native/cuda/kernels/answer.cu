#include <algorithm>

#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/answer_rows.cuh"
#include "worker/native/cuda/kernels/elements.cuh"
#include "worker/native/cuda/kernels/reduce.cuh"

namespace evald::native::cuda {
namespace {

constexpr float kLog2OfE = 1.4426950408889634f;
constexpr int kHeld = 2;  // vectors of a thread, kept in registers
constexpr int64_t kStretch = int64_t{kHeld} * kThreads * kVector;

int64_t StretchesOf(int64_t vocab) { return DivideUp(vocab, kStretch); }

// A small temperature must not give 0 * infinity for the largest logit.
__device__ inline float RoughInverse(double temperature) {
  return static_cast<float>(fmin(1 / temperature, 1e30));
}

// One block per stretch of a row.
template <bool kWhole>
__global__ void OutlineStretchesKernel(AnswerArgs args, unsigned stretches, Outline* outlines) {
  const int64_t row = blockIdx.x / stretches;
  const int64_t begin = blockIdx.x % stretches * kStretch;
  const float* logits = args.logits + row * args.vocab;
  float values[kHeld][kVector];
  Candidate mine{-kInfinity, INT32_MAX};
  bool below = true;
  EVALD_UNROLL
  for (int h = 0; h < kHeld; ++h) {
    const int64_t i = begin + (int64_t{h} * kThreads + threadIdx.x) * kVector;
    const int n = i < args.vocab ? VectorSize<kWhole>(i, args.vocab) : 0;
    if (n > 0) LoadVector<kWhole>(logits, i, n, values[h]);
    for (int j = 0; j < kVector; ++j) {
      if (j >= n) {
        values[h][j] = -kInfinity;
        continue;
      }
      below = below && values[h][j] < kInfinity;
      const Candidate here{values[h][j], static_cast<int>(i) + j};
      if (GoesBefore(here, mine)) mine = here;
    }
  }
  below = BlockAll(below);
  const Candidate best = BlockLargest(mine);
  const DeviceWish wish = args.wishes[row];
  double sum = 0;
  if (below && wish.target >= 0) {
    for (int h = 0; h < kHeld; ++h) {
      for (int j = 0; j < kVector; ++j) {
        sum += ExpOf(static_cast<double>(values[h][j]) - static_cast<double>(best.value));
      }
    }
    sum = BlockSum(sum);
  } else if (below && wish.sample != 0) {
    const float inverse = RoughInverse(wish.temperature) * kLog2OfE;
    float rough = 0;
    for (int h = 0; h < kHeld; ++h) {
      for (int j = 0; j < kVector; ++j) rough += Exp2Of((values[h][j] - best.value) * inverse);
    }
    sum = static_cast<double>(BlockSum(rough));
  }
  if (threadIdx.x == 0) outlines[blockIdx.x] = {best.value, best.place, below, 0, sum};
}

// One warp per row.
__global__ void JoinStretchesKernel(AnswerArgs args, int stretches, const Outline* outlines,
                                    Outline* rows) {
  const int64_t row = blockIdx.x;
  const Outline* parts = outlines + row * stretches;
  const DeviceWish wish = args.wishes[row];
  Candidate mine{-kInfinity, INT32_MAX};
  bool below = true;
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < stretches; i += kWarpLanes) {
    below = below && parts[i].below != 0;
    const Candidate here{parts[i].largest, parts[i].place};
    if (GoesBefore(here, mine)) mine = here;
  }
  below = __ballot_sync(kWarpMask, below) == kWarpMask;
  const Candidate best = WarpLargest(mine);
  const bool defined = below && best.value > -kInfinity;
  double sum = 0;
  if (defined && (wish.target >= 0 || wish.sample != 0)) {
    const double inverse = wish.target >= 0 ? 1.0 : RoughInverse(wish.temperature);
    for (int i = lane; i < stretches; i += kWarpLanes) {
      // The stretch's sum is NaN, and it has no share
      if (parts[i].largest == -kInfinity) continue;
      const double under = static_cast<double>(parts[i].largest) - static_cast<double>(best.value);
      sum += parts[i].sum * ExpOf(under * inverse);
    }
    sum = WarpSum(sum);
  }
  if (lane != 0) return;
  rows[row] = {best.value, best.place, defined, 0, sum};
  DeviceAnswer answer{best.place, defined, 0, 0};
  if (!defined && wish.target >= 0) {  // all log-probabilities are NaN
    answer = {0, 0, NAN, NAN};
  } else if (wish.target >= 0) {
    const float target = args.logits[row * args.vocab + wish.target];
    answer.log_largest = -LogOf(sum);
    answer.log_probability =
        static_cast<double>(target) - static_cast<double>(best.value) + answer.log_largest;
  }
  args.answers[row] = answer;
}

}  // namespace

uint64_t AnswerScratchBytes(int64_t rows, int64_t vocab) {
  return static_cast<uint64_t>(rows * (StretchesOf(vocab) + 1)) * sizeof(Outline);
}

void AnswerRows(const AnswerArgs& args, const Stream& stream) {
  if (args.rows == 0) return;
  const auto rows = static_cast<unsigned>(args.rows);
  const auto stretches = static_cast<unsigned>(StretchesOf(args.vocab));
  auto* outlines = static_cast<Outline*>(args.scratch);
  Outline* of_rows = outlines + args.rows * stretches;
  const auto outline_stretches = WholeVectors(args.vocab, args.logits)
                                     ? &OutlineStretchesKernel<true>
                                     : &OutlineStretchesKernel<false>;
  EVALD_LAUNCH(outline_stretches, rows * stretches, kThreads, 0, stream, args, stretches, outlines);
  EVALD_LAUNCH(JoinStretchesKernel, rows, kWarpLanes, 0, stream, args, static_cast<int>(stretches),
               outlines, of_rows);
  SampleRows(args, of_rows, stream);
}

}  // namespace evald::native::cuda
