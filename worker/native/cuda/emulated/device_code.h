#pragma once

#include <math.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "worker/native/cuda/emulated/device.h"
#include "worker/native/cuda/emulated/numbers.h"

/// device_code.cuh for the emulated device. A function that other lanes or threads must come to
/// takes the place of its call, for error messages. Lanes that come from different places have
/// diverged.

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __constant__ static
// Blocks run one after the other on one thread.
#define __shared__ static thread_local
#define EVALD_DYNAMIC_SHARED(name) \
  char* const name = ::evald::native::cuda::emulated::DynamicShared()
#define EVALD_UNROLL
#define EVALD_NO_UNROLL

#define threadIdx (::evald::native::cuda::emulated::current->index)
#define blockIdx (::evald::native::cuda::emulated::current->block)
#define blockDim (::evald::native::cuda::emulated::current->block_size)
#define gridDim (::evald::native::cuda::emulated::current->grid_size)

struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};

inline void __syncthreads(
    evald::native::cuda::emulated::Place place = evald::native::cuda::emulated::Place::current()) {
  evald::native::cuda::emulated::WaitForBlock(place);
}

inline void __syncwarp(
    uint32_t mask = 0xFFFFFFFF,
    evald::native::cuda::emulated::Place place = evald::native::cuda::emulated::Place::current()) {
  using evald::native::cuda::emulated::Arguments;
  evald::native::cuda::emulated::WaitForLanes(
      "__syncwarp", mask, nullptr, [](const Arguments&, uint32_t) {}, place);
}

namespace evald::native::cuda::emulated {

inline int Lane() { return static_cast<int>(current->number % 32); }

// Each lane of `mask` gets the value of the lane `from`.
template <typename T>
T Shuffle(const char* operation, uint32_t mask, T value, int from, Place place) {
  static_assert(std::is_trivially_copyable_v<T>);
  struct Exchange {
    T value;
    int from;
    T result;
    bool missing;
  } mine{value, from, value, false};
  WaitForLanes(
      operation, mask, &mine,
      [](const Arguments& lanes, uint32_t) {
        for (void* lane : lanes) {
          if (lane == nullptr) continue;
          auto* to = static_cast<Exchange*>(lane);
          const auto* source = static_cast<const Exchange*>(lanes[static_cast<size_t>(to->from)]);
          to->missing = source == nullptr;
          if (source != nullptr) to->result = source->value;
        }
      },
      place);
  if (mine.missing) Fail(std::string(operation) + " from a lane that is not in the mask");
  return mine.result;
}

}  // namespace evald::native::cuda::emulated

template <typename T>
T __shfl_sync(
    uint32_t mask, T value, int lane, int width = 32,
    evald::native::cuda::emulated::Place place = evald::native::cuda::emulated::Place::current()) {
  using namespace evald::native::cuda::emulated;  // NOLINT: not seen outside
  const int from = (Lane() & ~(width - 1)) | (lane & (width - 1));
  return Shuffle("__shfl_sync", mask, value, from, place);
}
template <typename T>
T __shfl_xor_sync(
    uint32_t mask, T value, int lanes, int width = 32,
    evald::native::cuda::emulated::Place place = evald::native::cuda::emulated::Place::current()) {
  using namespace evald::native::cuda::emulated;  // NOLINT
  const int from = Lane() ^ lanes, end = (Lane() & ~(width - 1)) + width;
  return Shuffle("__shfl_xor_sync", mask, value, from < end ? from : Lane(), place);
}
template <typename T>
T __shfl_down_sync(
    uint32_t mask, T value, unsigned lanes, int width = 32,
    evald::native::cuda::emulated::Place place = evald::native::cuda::emulated::Place::current()) {
  using namespace evald::native::cuda::emulated;  // NOLINT
  const int from = Lane() + static_cast<int>(lanes), end = (Lane() & ~(width - 1)) + width;
  return Shuffle("__shfl_down_sync", mask, value, from < end ? from : Lane(), place);
}
template <typename T>
T __shfl_up_sync(
    uint32_t mask, T value, unsigned lanes, int width = 32,
    evald::native::cuda::emulated::Place place = evald::native::cuda::emulated::Place::current()) {
  using namespace evald::native::cuda::emulated;  // NOLINT
  const int from = Lane() - static_cast<int>(lanes), first = Lane() & ~(width - 1);
  return Shuffle("__shfl_up_sync", mask, value, from >= first ? from : Lane(), place);
}
inline uint32_t __ballot_sync(
    uint32_t mask, int predicate,
    evald::native::cuda::emulated::Place place = evald::native::cuda::emulated::Place::current()) {
  using namespace evald::native::cuda::emulated;  // NOLINT
  struct Vote {
    bool yes;
    uint32_t all;
  } mine{predicate != 0, 0};
  WaitForLanes(
      "__ballot_sync", mask, &mine,
      [](const Arguments& lanes, uint32_t) {
        uint32_t all = 0;
        for (size_t i = 0; i < lanes.size(); ++i) {
          if (lanes[i] != nullptr && static_cast<Vote*>(lanes[i])->yes) all |= 1u << i;
        }
        for (void* lane : lanes) {
          if (lane != nullptr) static_cast<Vote*>(lane)->all = all;
        }
      },
      place);
  return mine.all;
}
inline int __any_sync(
    uint32_t mask, int predicate,
    evald::native::cuda::emulated::Place place = evald::native::cuda::emulated::Place::current()) {
  return __ballot_sync(mask, predicate, place) != 0;
}
inline int __all_sync(
    uint32_t mask, int predicate,
    evald::native::cuda::emulated::Place place = evald::native::cuda::emulated::Place::current()) {
  return __ballot_sync(mask, predicate, place) == mask;
}

inline int __popc(uint32_t x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<uint32_t>(x)); }
inline uint32_t __float_as_uint(float x) { return std::bit_cast<uint32_t>(x); }
inline float __uint_as_float(uint32_t x) { return std::bit_cast<float>(x); }

template <typename T>
T atomicAdd(T* to, T value) {
  return std::atomic_ref<T>(*to).fetch_add(value);
}
template <typename T>
T atomicMax(T* to, T value) {
  std::atomic_ref<T> ref(*to);
  T old = ref.load();
  while (old < value && !ref.compare_exchange_weak(old, value)) {
  }
  return old;
}

namespace evald::native::cuda {

inline float ExpOf(float x) { return std::exp(x); }
inline double ExpOf(double x) { return std::exp(x); }
inline float Exp2Of(float x) { return std::exp2(x); }
inline float LogOf(float x) { return std::log(x); }
inline double LogOf(double x) { return std::log(x); }
inline float SqrtOf(float x) { return std::sqrt(x); }
inline float RsqrtOf(float x) { return 1.0f / std::sqrt(x); }
inline float TanhOf(float x) { return std::tanh(x); }
inline float ErfOf(float x) { return std::erf(x); }

inline uint4 Load16(const void* from, emulated::Place place = emulated::Place::current()) {
  emulated::CheckAccess(from, 16, place);
  uint4 value;
  std::memcpy(&value, from, 16);
  return value;
}
inline void Store16(void* to, uint4 value, emulated::Place place = emulated::Place::current()) {
  emulated::CheckAccess(to, 16, place);
  std::memcpy(to, &value, 16);
}

template <typename T>
uint32_t Pack2(float low, float high) {
  return From<T>(low).bits | static_cast<uint32_t>(From<T>(high).bits) << 16;
}
template <typename T>
float Unpack(uint32_t pair, int which) {
  return ToFloat(T{static_cast<uint16_t>(which == 0 ? pair : pair >> 16)});
}

inline void CopyAsync16(void* to, const void* from,
                        emulated::Place place = emulated::Place::current()) {
  emulated::CopyAsync(to, from, place);
}
inline void CopyAsync16OrZero(void* to, const void* from, bool valid,
                              emulated::Place place = emulated::Place::current()) {
  emulated::CopyAsync(to, valid ? from : nullptr, place);
}
inline void CopyAsyncCommit() { emulated::CommitCopies(); }
template <int kLeft>
void CopyAsyncWait() {
  emulated::WaitForCopies(kLeft);
}

void LoadMatrix4(uint32_t (&r)[4], const void* row,
                 emulated::Place place = emulated::Place::current());
void LoadMatrix4Transposed(uint32_t (&r)[4], const void* row,
                           emulated::Place place = emulated::Place::current());
template <typename T>
void MmaM16N8K16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                 emulated::Place place = emulated::Place::current());
extern template void MmaM16N8K16<BF16>(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2],
                                       emulated::Place);
extern template void MmaM16N8K16<F16>(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2],
                                      emulated::Place);

}  // namespace evald::native::cuda
