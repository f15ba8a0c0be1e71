#include "worker/native/cuda/kernels/answer_rows.cuh"
#include "worker/native/cuda/kernels/elements.cuh"
#include "worker/native/cuda/kernels/reduce.cuh"

// Sampling as worker/native/sampler.cc defines it, without sorting. Logits become integers of the
// same order (keys). Probabilities become integers too (masses), so that their sums do not depend
// on the order in which threads add. The places where top-k and top-p cut the row are found digit
// by digit: for each digit of the key, the elements that agree in the earlier digits are counted,
// or weighed, by this digit.
namespace evald::native::cuda {
namespace {

constexpr int kThreadsOfRow = 512;
constexpr int64_t kTile = int64_t{kThreadsOfRow} * kVector;
constexpr int kTilesAtOnce = 2;
constexpr int kDigitBits = 11;
constexpr int kBins = 1 << kDigitBits;
constexpr int kBinsOfThread = kBins / kThreadsOfRow;

using Sum = unsigned long long;

__device__ inline unsigned KeyOf(float logit) {
  logit += 0.0f;  // -0 becomes 0
  const uint32_t bits = __float_as_uint(logit);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

__device__ inline float LogitOf(unsigned key) {
  return __uint_as_float(key >> 31 != 0 ? key & 0x7FFFFFFFu : ~key);
}

// exp((x - largest) / temperature) as an integer, scaled so that a row's masses add up to less than
// 2^63. A mass that is not 0 stays at least 1.
class Masses {
 public:
  __device__ Masses(const DeviceWish& wish, const Outline& row)
      : largest_(row.largest), inverse_(fmin(1 / wish.temperature, 1e300)) {
    int exponent;
    frexp(row.sum, &exponent);
    scale_ = ldexp(1.0, 62 - exponent);
  }
  __device__ Sum operator()(float logit) const {
    const double mass = ExpOf((static_cast<double>(logit) - largest_) * inverse_);
    const auto scaled = static_cast<Sum>(mass * scale_ + 0.5);
    return mass > 0 && scaled == 0 ? 1 : scaled;
  }

 private:
  double largest_;
  double inverse_;
  double scale_;
};

// 64-bit sums in shared memory, as two words: hardware adds to words.
struct Words {
  unsigned* low;
  unsigned* high;

  __device__ void Clear(int i) const { low[i] = high[i] = 0; }
  __device__ void Add(int i, Sum value) const {
    const auto part = static_cast<unsigned>(value);
    const unsigned before = atomicAdd(&low[i], part);
    const unsigned rest = static_cast<unsigned>(value >> 32) + (before + part < before ? 1 : 0);
    if (rest != 0) atomicAdd(&high[i], rest);
  }
  __device__ Sum At(int i) const { return Sum{high[i]} << 32 | low[i]; }
};

// Calls f(tile, place, elements, logits) for the calling thread's vector of each tile, even if the
// vector has no elements.
template <bool kWhole, typename F>
__device__ void ForEachVector(const float* logits, int64_t vocab, const F& f) {
  for (int64_t begin = 0; begin < vocab; begin += kTilesAtOnce * kTile) {
    float values[kTilesAtOnce][kVector];
    int sizes[kTilesAtOnce];
    for (int t = 0; t < kTilesAtOnce; ++t) {
      const int64_t i = begin + t * kTile + int64_t{threadIdx.x} * kVector;
      sizes[t] = i < vocab ? VectorSize<kWhole>(i, vocab) : 0;
      if (sizes[t] > 0) LoadVector<kWhole>(logits, i, sizes[t], values[t]);
    }
    for (int t = 0; t < kTilesAtOnce; ++t) {
      const int64_t first = begin + t * kTile;
      if (first >= vocab) break;
      f(static_cast<int>(first / kTile), first + int64_t{threadIdx.x} * kVector, sizes[t],
        values[t]);
    }
  }
}

// A key, and the weight of all elements below it.
struct Cut {
  unsigned key;
  Sum below;
  Sum total;
};

// The first key, in ascending order, with reached(weight up to and with the key, total weight);
// otherwise the last key that has a weight.
template <bool kWhole, typename Weight, typename Reached>
__device__ Cut FindCut(const float* logits, int64_t vocab, const Words& bins, const Weight& weight,
                       const Reached& reached) {
  __shared__ unsigned found_digit;
  __shared__ Sum found_below;
  Cut cut{0, 0, 0};
  for (int shift = 32; shift > 0;) {
    const int upper = shift;
    shift -= shift < kDigitBits ? shift : kDigitBits;
    const unsigned digits = (1u << (upper - shift)) - 1;
    for (int b = static_cast<int>(threadIdx.x); b < kBins; b += kThreadsOfRow) bins.Clear(b);
    __syncthreads();
    ForEachVector<kWhole>(logits, vocab, [&](int, int64_t, int n, const float(&values)[kVector]) {
      for (int j = 0; j < n; ++j) {
        const unsigned key = KeyOf(values[j]);
        if (static_cast<uint64_t>(key) >> upper != cut.key) continue;
        const Sum more = weight(key, values[j]);
        if (more != 0) bins.Add(static_cast<int>(key >> shift & digits), more);
      }
    });
    __syncthreads();
    const int first = static_cast<int>(threadIdx.x) * kBinsOfThread;
    Sum mine = 0, here = 0;
    for (int b = first; b < first + kBinsOfThread; ++b) mine += bins.At(b);
    Sum sum = cut.below + BlockPrefix(mine, &here);
    const Sum end = cut.below + here;
    if (upper == 32) cut.total = here;
    for (int b = first; b < first + kBinsOfThread; ++b) {
      const Sum below = sum;
      sum += bins.At(b);
      if (sum == below || reached(below, cut.total)) continue;
      if (!reached(sum, cut.total) && sum != end) continue;
      found_digit = static_cast<unsigned>(b);
      found_below = below;
    }
    __syncthreads();
    cut.key = cut.key << (upper - shift) | found_digit;
    cut.below = found_below;
  }
  return cut;
}

// The part of a row that is kept: all elements with a key above `key`, and some of those equal to
// it, which have `mass` each.
struct Kept {
  unsigned key = 0;
  Sum mass = 0;
};

// The place of the draw: its tile, how much of the tile's mass is before it, and how many of the
// tile's equals are dropped.
struct Draw {
  int tile;
  Sum left;
  Sum dropped;
};

// Finds the draw from the masses above the key and the numbers of equals by tile. `drops(equals)`
// tells how many of the equals are dropped. Called by one thread.
template <typename Drops>
__device__ Draw DrawTile(const Kept& kept, const Words& masses, const unsigned* equals, int tiles,
                         double uniform, const Drops& drops) {
  Sum total = 0, ties = 0;
  for (int t = 0; t < tiles; ++t) {
    total += masses.At(t);
    ties += equals[t];
  }
  Sum dropped = drops(ties);
  total += (ties - dropped) * kept.mass;
  auto left = static_cast<Sum>(uniform * static_cast<double>(total));
  if (left >= total) left = total - 1;
  for (int t = 0;; ++t) {
    const Sum dropped_here = dropped < equals[t] ? dropped : equals[t];
    const Sum mass = masses.At(t) + (equals[t] - dropped_here) * kept.mass;
    if (left < mass || t + 1 == tiles) return {t, left, dropped_here};
    left -= mass;
    dropped -= dropped_here;
  }
}

// Finds the token that the draw falls on. The thread that has the token writes it.
template <bool kWhole>
__device__ void TakeToken(const float* logits, int64_t vocab, const Kept& kept, const Draw& draw,
                          const Masses& mass_of, int32_t* token) {
  const int64_t i = draw.tile * kTile + int64_t{threadIdx.x} * kVector;
  const int n = i < vocab ? VectorSize<kWhole>(i, vocab) : 0;
  float values[kVector] = {};
  if (n > 0) LoadVector<kWhole>(logits, i, n, values);
  Sum masses[kVector] = {}, ties = 0, total = 0;
  for (int j = 0; j < n; ++j) ties += KeyOf(values[j]) == kept.key ? 1 : 0;
  Sum rank = BlockPrefix(ties, &total), mine = 0;
  for (int j = 0; j < n; ++j) {
    const unsigned key = KeyOf(values[j]);
    masses[j] = key > kept.key ? mass_of(values[j]) : 0;
    if (key == kept.key && rank++ >= draw.dropped) masses[j] = kept.mass;
    mine += masses[j];
  }
  Sum sum = BlockPrefix(mine, &total);
  for (int j = 0; j < n; ++j) {
    if (sum <= draw.left && draw.left < sum + masses[j]) *token = static_cast<int32_t>(i) + j;
    sum += masses[j];
  }
}

// The number of `ties` equals that are dropped: as many as possible with the dropped share at most
// 1 - top_p, but never the last.
__device__ inline Sum DroppedTies(const Cut& cut, Sum mass, Sum ties, double top_p) {
  Sum least = 0, most = ties - 1;
  while (least < most) {
    const Sum middle = least + (most - least + 1) / 2;
    const auto sum = static_cast<double>(cut.below + middle * mass);
    if (sum / static_cast<double>(cut.total) > 1 - top_p) {
      most = middle - 1;
    } else {
      least = middle;
    }
  }
  return least;
}

// One block per row.
template <bool kWhole>
__global__ void __launch_bounds__(kThreadsOfRow, 2)
    SampleKernel(AnswerArgs args, const Outline* rows, int tiles) {
  EVALD_DYNAMIC_SHARED(shared);
  __shared__ unsigned low[kBins], high[kBins];
  __shared__ Draw draw;
  const DeviceWish wish = args.wishes[blockIdx.x];
  const Outline row = rows[blockIdx.x];
  if (wish.target >= 0 || wish.sample == 0 || row.below == 0) return;
  const float* logits = args.logits + blockIdx.x * args.vocab;
  const Masses mass_of(wish, row);
  Kept kept;
  if (wish.top_k > 0 && wish.top_k < args.vocab) {
    const auto rest = static_cast<Sum>(args.vocab - wish.top_k);
    kept.key = FindCut<kWhole>(
                   logits, args.vocab, {low, high}, [](unsigned, float) { return Sum{1}; },
                   [&](Sum sum, Sum) { return sum > rest; })
                   .key;
  }
  Cut cut{};
  if (wish.top_p < 1) {
    const unsigned least = kept.key;
    cut = FindCut<kWhole>(
        logits, args.vocab, {low, high},
        [&](unsigned key, float logit) { return key >= least ? mass_of(logit) : 0; },
        [&](Sum sum, Sum total) {
          return static_cast<double>(sum) / static_cast<double>(total) > 1 - wish.top_p;
        });
    kept.key = cut.key;
  }
  if (kept.key != 0) kept.mass = mass_of(LogitOf(kept.key));

  auto* words = reinterpret_cast<unsigned*>(shared);
  const Words masses{words, words + tiles};
  unsigned* equals = words + 2 * tiles;
  for (int t = static_cast<int>(threadIdx.x); t < tiles; t += kThreadsOfRow) {
    masses.Clear(t);
    equals[t] = 0;
  }
  __syncthreads();
  ForEachVector<kWhole>(logits, args.vocab,
                        [&](int tile, int64_t, int n, const float(&values)[kVector]) {
                          Sum mass = 0;
                          unsigned ties = 0;
                          for (int j = 0; j < n; ++j) {
                            const unsigned key = KeyOf(values[j]);
                            if (key > kept.key) mass += mass_of(values[j]);
                            if (key == kept.key) ++ties;
                          }
                          mass = WarpSum(mass);
                          if (threadIdx.x % kWarpLanes == 0 && mass != 0) masses.Add(tile, mass);
                          if (ties != 0) atomicAdd(&equals[tile], ties);
                        });
  __syncthreads();
  if (threadIdx.x == 0) {
    draw = DrawTile(kept, masses, equals, tiles, wish.uniform, [&](Sum ties) {
      return wish.top_p < 1 ? DroppedTies(cut, kept.mass, ties, wish.top_p) : 0;
    });
  }
  __syncthreads();
  TakeToken<kWhole>(logits, args.vocab, kept, draw, mass_of, &args.answers[blockIdx.x].token);
}

}  // namespace

void SampleRows(const AnswerArgs& args, const Outline* rows, const Stream& stream) {
  const auto tiles = static_cast<int>(DivideUp(args.vocab, kTile));
  const auto sample =
      WholeVectors(args.vocab, args.logits) ? &SampleKernel<true> : &SampleKernel<false>;
  EVALD_LAUNCH(sample, static_cast<unsigned>(args.rows), kThreadsOfRow,
               static_cast<unsigned>(tiles) * 3 * sizeof(unsigned), stream, args, rows, tiles);
}

}  // namespace evald::native::cuda
