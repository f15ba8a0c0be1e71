#include <algorithm>

#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/kernels/elements.cuh"
#include "worker/native/cuda/kernels/reduce.cuh"

namespace evald::native::cuda {
namespace {

constexpr int kThreadsOfRow = 128;
constexpr int kThreadsOfWholeRow = 512;  // if all heads are normalized together

// The division of a block's work among its threads: teams of `team` lanes, one head each. A head's
// dimensions come in `units`, pairs of vectors: first those that are rotated with each other, then
// the rest.
struct Teams {
  int team;         // a power of two up to kWarpLanes
  unsigned slices;  // blocks that share one row's heads
  int64_t rotated;  // units
  int64_t units;
};

// A head's role. Heads are numbered queries first, then keys, then values.
enum class Role { kQuery, kKey, kValue };
struct Head {
  Role role;
  int64_t index;   // among heads of its role
  int64_t offset;  // in the row
};

__device__ inline Head HeadOf(const HeadsArgs& args, int64_t number) {
  const int64_t dim = args.kv.head_dim, group = args.heads / args.kv.kv_heads;
  Head head{Role::kQuery, number, number * dim};
  if (number >= args.heads) {
    const int64_t beyond = number - args.heads;
    head.role = beyond < args.kv.kv_heads ? Role::kKey : Role::kValue;
    head.index = head.role == Role::kKey ? beyond : beyond - args.kv.kv_heads;
  }
  if (!args.packed) return head;
  const int64_t set = (group + 2) * dim;  // a key-value head's queries, its key, its value
  head.offset = head.role == Role::kQuery
                    ? head.index / group * set + head.index % group * dim
                    : head.index * set + (group + (head.role == Role::kKey ? 0 : 1)) * dim;
  return head;
}

// One row while it is prepared. kSize is the number of elements of a vector: kVector if all parts
// of a head are multiples of it and aligned to 16 bytes, otherwise 1.
template <typename T, int kSize>
struct Row {
  const HeadsArgs& args;
  const Teams& teams;
  T* qkv;
  int64_t position;

  // A pair of vectors of a head.
  struct Unit {
    int64_t first, second;
    bool has_second;
    float a[kSize], b[kSize];
  };

  __device__ void Load(const T* from, int64_t i, float (&values)[kSize]) const {
    if constexpr (kSize == kVector) {
      LoadVector<true>(from, i, kVector, values);
    } else {
      values[0] = ToFloat(from[i]);
    }
  }
  __device__ void LoadFloats(const float* from, int64_t i, float (&values)[kSize]) const {
    if constexpr (kSize == kVector) {
      LoadVector<true>(from, i, kVector, values);
    } else {
      values[0] = from[i];
    }
  }
  __device__ static void Store(T* to, int64_t i, const float (&values)[kSize]) {
    if constexpr (kSize == kVector) {
      StoreVector<true>(to, i, kVector, values);
    } else {
      to[i] = From<T>(values[0]);
    }
  }

  // Reads a vector and adds its bias.
  __device__ void TakeVector(int64_t i, float (&values)[kSize]) const {
    Load(qkv, i, values);
    if (args.bias == nullptr) return;
    float bias[kSize];
    LoadFloats(args.bias, i, bias);
    for (int j = 0; j < kSize; ++j) values[j] += bias[j];
  }
  __device__ Unit Take(const Head& head, int64_t index) const {
    Unit unit{};
    if (index < teams.rotated) {
      unit.first = index * kSize;
      unit.second = unit.first + args.rotary_dim / 2;
    } else {
      unit.first = args.rotary_dim + (index - teams.rotated) * 2 * kSize;
      unit.second = unit.first + kSize;
    }
    unit.has_second = unit.second < args.kv.head_dim;
    TakeVector(head.offset + unit.first, unit.a);
    if (unit.has_second) TakeVector(head.offset + unit.second, unit.b);
    return unit;
  }

  // The sum of squares over the calling thread's part of `count` heads from number `first` on.
  __device__ float SquaresOfHeads(int64_t first, int64_t count) const {
    const int64_t vectors = args.kv.head_dim / kSize;
    float squares = 0;
    for (int64_t n = threadIdx.x; n < count * vectors; n += blockDim.x) {
      float values[kSize];
      TakeVector(HeadOf(args, first + n / vectors).offset + n % vectors * kSize, values);
      for (int j = 0; j < kSize; ++j) squares = fmaf(values[j], values[j], squares);
    }
    return squares;
  }
  // The sum of squares over the calling lane's part of one head.
  __device__ float SquaresOfLane(const Head& head, int lane) const {
    float squares = 0;
    for (int64_t index = lane; index < teams.units; index += teams.team) {
      const Unit unit = Take(head, index);
      for (int j = 0; j < kSize; ++j) {
        squares = fmaf(unit.a[j], unit.a[j], squares);
        squares = fmaf(unit.b[j], unit.b[j], squares);
      }
    }
    return squares;
  }

  __device__ float Factor(float squares, int64_t count) const {
    return 1.0f / SqrtOf(squares / static_cast<float>(count) + args.eps);
  }
  __device__ void Scale(Unit* unit, float factor, const float* weight) const {
    float scale[kSize];
    LoadFloats(weight, unit->first, scale);
    for (int j = 0; j < kSize; ++j) unit->a[j] *= factor * scale[j];
    if (!unit->has_second) return;
    LoadFloats(weight, unit->second, scale);
    for (int j = 0; j < kSize; ++j) unit->b[j] *= factor * scale[j];
  }
  __device__ void Rotate(Unit* unit) const {
    const int64_t angle = position * (args.rotary_dim / 2) + unit->first;
    float cosines[kSize], sines[kSize];
    LoadFloats(args.cosines, angle, cosines);
    LoadFloats(args.sines, angle, sines);
    for (int j = 0; j < kSize; ++j) {
      const float a = unit->a[j], b = unit->b[j];
      unit->a[j] = a * cosines[j] - b * sines[j];
      unit->b[j] = b * cosines[j] + a * sines[j];
    }
  }

  // Whether the calling lane's part of a value is finite as it is stored.
  __device__ bool ValueIsFinite(int64_t index, int lane) const {
    const Head value = HeadOf(args, args.heads + args.kv.kv_heads + index);
    bool finite = true;
    for (int64_t i = lane; i < teams.units; i += teams.team) {
      const Unit unit = Take(value, i);
      for (int j = 0; j < kSize; ++j) {
        finite = finite && fabsf(ToFloat(From<T>(unit.a[j]))) < kInfinity &&
                 fabsf(ToFloat(From<T>(unit.b[j]))) < kInfinity;
      }
    }
    return finite;
  }
  __device__ static void Fill(Unit* unit, float value) {
    for (int j = 0; j < kSize; ++j) unit->a[j] = unit->b[j] = value;
  }

  // The place of the prepared head: queries stay, keys and values go to their page.
  __device__ T* Target(const Head& head, int32_t table) const {
    if (head.role == Role::kQuery) return qkv + head.offset;
    const KvLayout& kv = args.kv;
    char* page = args.batch.pages[table + position / kPagePositions];
    const int64_t place = (args.layer * 2 + (head.role == Role::kValue)) * kv.kv_heads + head.index;
    return reinterpret_cast<T*>(page) +
           (place * kPagePositions + position % kPagePositions) * kv.head_dim;
  }
};

template <typename T, int kSize, HeadNorm kNorm>
__global__ void PrepareHeadsKernel(HeadsArgs args, Teams teams) {
  const int64_t index = blockIdx.x / teams.slices, slice = blockIdx.x % teams.slices;
  const int64_t position = args.batch.positions[index];
  if (position < 0) return;
  const int64_t dim = args.kv.head_dim, kv_heads = args.kv.kv_heads;
  const int64_t width = (args.heads + 2 * kv_heads) * dim;
  const Row<T, kSize> row{args, teams, static_cast<T*>(args.qkv) + index * width, position};
  [[maybe_unused]] float query_factor = 1, key_factor = 1;
  if constexpr (kNorm == HeadNorm::kWhole) {  // all threads read here what is overwritten below
    query_factor = row.Factor(BlockSum(row.SquaresOfHeads(0, args.heads)), args.heads * dim);
    key_factor = row.Factor(BlockSum(row.SquaresOfHeads(args.heads, kv_heads)), kv_heads * dim);
  }
  const int32_t table = args.batch.tables[index];
  const int teams_here = static_cast<int>(blockDim.x) / teams.team;
  const int team = static_cast<int>(threadIdx.x) / teams.team;
  const int lane = static_cast<int>(threadIdx.x) % teams.team;
  const int64_t heads = args.heads + 2 * kv_heads;
  // All lanes go round equally often, since they add up together.
  for (int64_t first = slice * teams_here; first < heads; first += teams.slices * teams_here) {
    const bool within = first + team < heads;
    const Head head = HeadOf(args, within ? first + team : 0);
    [[maybe_unused]] const bool is_query = head.role == Role::kQuery;
    [[maybe_unused]] float factor = is_query ? query_factor : key_factor;
    if constexpr (kNorm == HeadNorm::kEach) {
      factor = row.Factor(TeamSum(within ? row.SquaresOfLane(head, lane) : 0.0f, teams.team), dim);
    }
    const bool finite =
        TeamAll(head.role == Role::kQuery || row.ValueIsFinite(head.index, lane), teams.team);
    if (!within) continue;
    [[maybe_unused]] const float* weight = is_query ? args.query_norm : args.key_norm;
    if constexpr (kNorm == HeadNorm::kWhole) weight += head.index * dim;
    T* target = row.Target(head, table);
    for (int64_t i = lane; i < teams.units; i += teams.team) {
      auto unit = row.Take(head, i);
      if (head.role != Role::kValue) {
        if constexpr (kNorm != HeadNorm::kNone) row.Scale(&unit, factor, weight);
        if (i < teams.rotated) row.Rotate(&unit);
      }
      if (!finite) row.Fill(&unit, head.role == Role::kKey ? NAN : 0.0f);
      row.Store(target, unit.first, unit.a);
      if (unit.has_second) row.Store(target, unit.second, unit.b);
    }
  }
}

Teams PlanTeams(const HeadsArgs& args, int size) {
  Teams teams{};
  teams.rotated = args.rotary_dim / 2 / size;
  const int64_t others = (args.kv.head_dim - args.rotary_dim) / size;
  teams.units = teams.rotated + (others + 1) / 2;
  teams.team = 1;
  while (teams.team < kWarpLanes && teams.team < teams.units) teams.team *= 2;
  const int64_t heads = args.heads + 2 * args.kv.kv_heads;
  const int64_t teams_here = kThreadsOfRow / teams.team;
  teams.slices =
      args.norm == HeadNorm::kWhole ? 1 : static_cast<unsigned>(DivideUp(heads, teams_here));
  return teams;
}

template <typename T, int kSize>
void LaunchHeads(const HeadsArgs& args, const Stream& stream) {
  const Teams teams = PlanTeams(args, kSize);
  const auto prepare_heads =
      args.norm == HeadNorm::kNone   ? &PrepareHeadsKernel<T, kSize, HeadNorm::kNone>
      : args.norm == HeadNorm::kEach ? &PrepareHeadsKernel<T, kSize, HeadNorm::kEach>
                                     : &PrepareHeadsKernel<T, kSize, HeadNorm::kWhole>;
  const int threads = args.norm == HeadNorm::kWhole ? kThreadsOfWholeRow : kThreadsOfRow;
  EVALD_LAUNCH(prepare_heads, static_cast<unsigned>(args.batch.rows) * teams.slices, threads, 0,
               stream, args, teams);
}

}  // namespace

// Pages are aligned to 16 bytes: for whole vectors only the shape and the other addresses matter.
void PrepareHeads(const HeadsArgs& args, const Stream& stream) {
  if (args.batch.rows == 0) return;
  const bool whole = args.rotary_dim % (2 * kVector) == 0 &&
                     WholeVectors(args.kv.head_dim, args.qkv, args.bias, args.query_norm,
                                  args.key_norm, args.cosines, args.sines);
  WithElement(args.kv.type, [&]<typename T>() {
    if (whole) {
      LaunchHeads<T, kVector>(args, stream);
    } else {
      LaunchHeads<T, 1>(args, stream);
    }
  });
}

}  // namespace evald::native::cuda
