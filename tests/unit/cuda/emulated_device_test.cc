#ifndef EVALD_EMULATED
#define EVALD_EMULATED
#endif
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>

#include "worker/native/cuda/kernels/device_code.cuh"

namespace evald::native::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Runs a kernel and returns its error.
std::string FailureOf(unsigned threads, size_t shared_bytes, const std::function<void()>& kernel) {
  try {
    emulated::RunGrid("Tried", 1, threads, shared_bytes, kernel);
  } catch (const DeviceError& e) {
    EXPECT_EQ(e.fault(), DeviceFault::kKernel);
    return e.what();
  }
  return "";
}

__global__ void CopyThrough(const float* from, float* to, bool wait) {
  EVALD_DYNAMIC_SHARED(shared);
  const unsigned i = threadIdx.x;
  CopyAsync16(shared + 16 * i, from + 4 * i);
  CopyAsyncCommit();
  CopyAsync16(shared + 16 * (blockDim.x + i), from + 4 * i);
  CopyAsyncCommit();
  if (wait) CopyAsyncWait<1>();
  __syncthreads();
  const unsigned other = blockDim.x - 1 - i;
  for (int k = 0; k < 4; ++k) to[4 * i + k] = reinterpret_cast<float*>(shared)[4 * other + k];
  to[4 * blockDim.x + i] = reinterpret_cast<float*>(shared)[4 * (blockDim.x + i)];
}

TEST(EmulatedDeviceTest, AnAsynchronousCopyIsThereAfterTheWaitForIt) {
  alignas(16) float from[128], to[160];
  std::iota(from, from + 128, 0.0f);
  emulated::RunGrid("CopyThrough", 1, 32, 1024, [&] { CopyThrough(from, to, true); });
  for (int i = 0; i < 32; ++i) {
    for (int k = 0; k < 4; ++k) EXPECT_EQ(to[4 * i + k], from[4 * (31 - i) + k]);
    EXPECT_TRUE(std::isnan(to[128 + i]));  // nothing waited for the second copy
  }
  emulated::RunGrid("CopyThrough", 1, 32, 1024, [&] { CopyThrough(from, to, false); });
  for (const float x : to) EXPECT_TRUE(std::isnan(x));
}

TEST(EmulatedDeviceTest, FillingWhatOthersStillReadIsSeen) {
  alignas(16) const float from[4] = {1, 2, 3, 4};
  float seen = 0;
  emulated::RunGrid("Refill", 1, 2, 16, [&] {
    EVALD_DYNAMIC_SHARED(shared);
    if (threadIdx.x == 0) reinterpret_cast<float*>(shared)[0] = 7;
    __syncthreads();
    if (threadIdx.x == 1) CopyAsync16(shared, from);  // a barrier is missing before this copy
    __syncthreads();
    if (threadIdx.x == 0) seen = reinterpret_cast<float*>(shared)[0];
  });
  EXPECT_TRUE(std::isnan(seen));
}

TEST(EmulatedDeviceTest, ALaneThatEndsEarlyIsNamed) {
  EXPECT_THAT(FailureOf(64, 0,
                        [] {
                          if (threadIdx.x == 40) return;
                          __syncwarp();
                        }),
              AllOf(HasSubstr("kernel Tried"), HasSubstr("thread 32"), HasSubstr("__syncwarp"),
                    HasSubstr("thread 40 has ended")));
}

TEST(EmulatedDeviceTest, LanesAtDifferentPlacesHaveDiverged) {
  const std::string failure = FailureOf(32, 0, [] {
    int x = 1;
    if (threadIdx.x < 16) {
      x = __shfl_xor_sync(kWarpMask, x, 1);
    } else {
      x = __shfl_xor_sync(kWarpMask, x, 2);
    }
  });
  EXPECT_THAT(failure, AllOf(HasSubstr("thread 0: waits at __shfl_xor_sync"),
                             HasSubstr("thread 16 waits at __shfl_xor_sync"),
                             HasSubstr("emulated_device_test.cc:")));
}

TEST(EmulatedDeviceTest, AWarpAtABarrierAndOneAtAnotherOperationAreNamed) {
  EXPECT_THAT(FailureOf(32, 0,
                        [] {
                          if (threadIdx.x == 5) __syncthreads();
                          __syncwarp();
                        }),
              AllOf(HasSubstr("__syncwarp"), HasSubstr("thread 5 waits at __syncthreads")));
}

TEST(EmulatedDeviceTest, AThreadThatMissesABarrierIsNamed) {
  EXPECT_THAT(FailureOf(96, 0,
                        [] {
                          if (threadIdx.x == 70) return;
                          __syncthreads();
                        }),
              AllOf(HasSubstr("__syncthreads"), HasSubstr("thread 70 has ended")));
}

TEST(EmulatedDeviceTest, AMaskNamesLanesThatExistAndTheCaller) {
  EXPECT_THAT(FailureOf(20, 0, [] { __syncwarp(); }), HasSubstr("thread 20 does not exist"));
  EXPECT_THAT(FailureOf(32, 0, [] { __syncwarp(0xFFFF); }),
              HasSubstr("leaves the calling lane out"));
  EXPECT_EQ(FailureOf(20, 0, [] { __syncwarp(0xFFFFF); }), "");
}

TEST(EmulatedDeviceTest, SharedMemoryHasItsSize) {
  alignas(16) static const float from[4] = {};
  EXPECT_THAT(FailureOf(1, 32,
                        [] {
                          EVALD_DYNAMIC_SHARED(shared);
                          CopyAsync16(shared + 32, from);
                        }),
              HasSubstr("touches 16 bytes at 32 of 32"));
  EXPECT_THAT(FailureOf(1, 32,
                        [] {
                          EVALD_DYNAMIC_SHARED(shared);
                          Store16(shared + 8, Load16(from));
                        }),
              HasSubstr("not aligned"));
  EXPECT_THAT(FailureOf(1, 32,
                        [] {
                          EVALD_DYNAMIC_SHARED(shared);
                          shared[100] = 0;
                        }),
              HasSubstr("beyond the 32 bytes"));
}

TEST(EmulatedDeviceTest, SharedMemoryOfABlockIsNotTheLastOnes) {
  std::vector<float> seen(3);
  emulated::RunGrid("Poisoned", 3, 1, 64, [&] {
    EVALD_DYNAMIC_SHARED(shared);
    seen[blockIdx.x] = reinterpret_cast<float*>(shared)[3];
    reinterpret_cast<float*>(shared)[3] = 1;
  });
  for (const float x : seen) EXPECT_TRUE(std::isnan(x));
}

TEST(EmulatedDeviceTest, LaunchesThatNoGpuTakesAreRefused) {
  const auto nothing = [] {};
  EXPECT_THROW(emulated::RunGrid("k", 0, 32, 0, nothing), DeviceError);
  EXPECT_THROW(emulated::RunGrid("k", 1, 1025, 0, nothing), DeviceError);
  EXPECT_THROW(emulated::RunGrid("k", dim3(1, 65536), 32, 0, nothing), DeviceError);
  EXPECT_THROW(emulated::RunGrid("k", 1, 32, 200 << 10, nothing), DeviceError);
}

TEST(EmulatedDeviceTest, WorksOnAfterAKernelThatFailed) {
  EXPECT_NE(FailureOf(64, 0,
                      [] {
                        if (threadIdx.x == 63) return;
                        __syncthreads();
                      }),
            "");
  unsigned count = 0;
  EXPECT_EQ(FailureOf(64, 0,
                      [&] {
                        __syncthreads();
                        atomicAdd(&count, 1u);
                      }),
            "");
  EXPECT_EQ(count, 64u);
}

TEST(EmulatedDeviceTest, KernelsThatNeverWaitRunAsALoop) {
  std::vector<unsigned> order;
  emulated::RunGrid("Loop", dim3(2, 2), dim3(3, 2), 0, [&] {
    order.push_back(((blockIdx.y * 2 + blockIdx.x) * 2 + threadIdx.y) * 3 + threadIdx.x);
  });
  std::vector<unsigned> ascending(24);
  std::iota(ascending.begin(), ascending.end(), 0u);
  EXPECT_EQ(order, ascending);
}

// Sums over lanes, warps and blocks, from several threads of the host at once.
TEST(EmulatedDeviceTest, ThreadsOfTheHostLaunchBesideEachOther) {
  std::vector<std::thread> threads;
  std::vector<unsigned> totals(3);
  for (size_t t = 0; t < totals.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int again = 0; again < 20; ++again) {
        emulated::RunGrid("Sum", 4, 96, 0, [&] {
          __shared__ unsigned of_warps[3];
          unsigned x = threadIdx.x;
          for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(kWarpMask, x, step);
          if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
          __syncthreads();
          if (threadIdx.x == 0) atomicAdd(&totals[t], of_warps[0] + of_warps[1] + of_warps[2]);
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const unsigned total : totals) EXPECT_EQ(total, 20u * 4 * (95 * 96 / 2));
}

TEST(EmulatedDeviceTest, LanesExchangeValues) {
  emulated::RunGrid("Exchange", 1, 32, 0, [] {
    const int lane = static_cast<int>(threadIdx.x);
    EXPECT_EQ(__shfl_sync(kWarpMask, 100 + lane, 7), 107);
    EXPECT_EQ(__shfl_sync(kWarpMask, 1.5 * lane, 2, 8), 1.5 * (lane / 8 * 8 + 2));
    EXPECT_EQ(__shfl_xor_sync(kWarpMask, lane, 5), lane ^ 5);
    EXPECT_EQ(__shfl_down_sync(kWarpMask, lane, 30), lane < 2 ? lane + 30 : lane);
    EXPECT_EQ(__shfl_up_sync(kWarpMask, lane, 30), lane < 30 ? lane : lane - 30);
    EXPECT_EQ(__ballot_sync(kWarpMask, lane % 3 == 0), 0x49249249u);
    EXPECT_TRUE(__any_sync(kWarpMask, lane == 31));
    EXPECT_FALSE(__all_sync(kWarpMask, lane != 31));
    if (lane < 16) {
      EXPECT_EQ(__shfl_sync(0xFFFF, lane, 3), 3);
    }
  });
}

// d = a · b from rows in memory, in the operations' layouts. The numbers are small and whole, so
// sums are exact.
template <typename T>
void TryMatrices() {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> small(-8, 8);
  alignas(16) T a[16][16], b[16][8], b_rows[8][16];
  float d[16][8], expected[16][8];
  for (auto& row : a) {
    for (T& x : row) x = From<T>(static_cast<float>(small(random)));
  }
  for (int k = 0; k < 16; ++k) {
    for (int n = 0; n < 8; ++n) b[k][n] = b_rows[n][k] = From<T>(static_cast<float>(small(random)));
  }
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      expected[m][n] = static_cast<float>(m - n);
      for (int k = 0; k < 16; ++k) expected[m][n] += ToFloat(a[m][k]) * ToFloat(b[k][n]);
    }
  }
  for (const bool transposed : {false, true}) {
    emulated::RunGrid("Matrices", 1, 32, 0, [&] {
      const int lane = static_cast<int>(threadIdx.x);
      uint32_t fa[4], fb[4];
      LoadMatrix4(fa, &a[lane % 16][lane / 16 * 8]);
      if (transposed) {
        LoadMatrix4Transposed(fb, &b[lane % 16][0]);
      } else {
        LoadMatrix4(fb, &b_rows[lane % 8][lane / 8 % 2 * 8]);
      }
      float sums[4];
      for (int i = 0; i < 4; ++i) {
        sums[i] = static_cast<float>(lane / 4 + i / 2 * 8 - lane % 4 * 2 - i % 2);
      }
      const uint32_t pair[2] = {fb[0], fb[1]};
      MmaM16N8K16<T>(sums, fa, pair);
      for (int i = 0; i < 4; ++i) d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = sums[i];
    });
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 8; ++n) EXPECT_EQ(d[m][n], expected[m][n]) << m << " " << n;
    }
  }
}
TEST(EmulatedDeviceTest, MatricesOfBf16) { TryMatrices<BF16>(); }
TEST(EmulatedDeviceTest, MatricesOfF16) { TryMatrices<F16>(); }

// Every number of 16 bits comes back unchanged. A number between two goes to the nearer one, and
// one halfway to the even one.
template <typename T>
void TryNumbers(uint32_t infinity) {
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    const T low{static_cast<uint16_t>(bits)}, high{static_cast<uint16_t>(bits + 1)};
    const float x = ToFloat(low);
    ASSERT_EQ(From<T>(x).bits, bits);
    ASSERT_EQ(From<T>(-x).bits, bits | 0x8000);
    ASSERT_EQ(ToFloat(T{static_cast<uint16_t>(bits | 0x8000)}), -x);
    if (bits + 1 == infinity) break;
    ASSERT_LT(x, ToFloat(high));
    const auto middle = static_cast<float>((static_cast<double>(x) + ToFloat(high)) / 2);  // exact
    ASSERT_EQ(From<T>(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(From<T>(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(From<T>(std::nextafter(middle, kInfinity)).bits, bits + 1);
  }
  EXPECT_EQ(From<T>(kInfinity).bits, infinity);
  EXPECT_TRUE(std::isnan(ToFloat(From<T>(NAN))));
}
TEST(EmulatedDeviceTest, NumbersOfBf16) { TryNumbers<BF16>(0x7F80); }
TEST(EmulatedDeviceTest, NumbersOfF16) {
  TryNumbers<F16>(0x7C00);
  EXPECT_EQ(From<F16>(65519.0f).bits, 0x7BFF);
  EXPECT_EQ(From<F16>(65520.0f).bits, 0x7C00);
}

}  // namespace
}  // namespace evald::native::cuda
