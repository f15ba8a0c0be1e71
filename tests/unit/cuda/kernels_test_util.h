#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "worker/native/cuda/kernels.h"
#include "worker/native/cuda/runtime.h"

/// Common parts of the tests of single kernels: inputs, outputs between guards, bounds of errors.
/// References are computed in double precision from the device's rounded inputs.
namespace evald::native::cuda {

inline const std::vector<WeightType> kTypes = {WeightType::kF32, WeightType::kF16,
                                               WeightType::kBF16};
std::string NameOf(WeightType type);
int64_t BytesOf(WeightType type);

/// Half a unit in the last place of 1.
double UnitOf(WeightType type);
inline constexpr double kUnit = 0x1p-24;  ///< of fp32, in which kernels compute

/// Rounded to nearest even.
double Rounded(WeightType type, double value);

/// Device memory with guards before and after it. It holds NaN in every type of number (all bits
/// set) until it is written. `shift` moves it by that many bytes from a good alignment.
class Guarded {
 public:
  explicit Guarded(int64_t bytes, int64_t shift = 0);

  char* data() const { return memory_.data() + begin_; }
  void Write(const void* from);
  /// Waits for the stream. Expects that the guards are unchanged.
  std::vector<char> Bytes() const;

 private:
  int64_t bytes_;
  int64_t begin_;
  Memory memory_;
};

/// Plain values on the device.
template <typename T>
class Values {
 public:
  explicit Values(int64_t count, int64_t shift = 0)
      : guarded_(count * static_cast<int64_t>(sizeof(T)), shift * static_cast<int64_t>(sizeof(T))) {
  }
  explicit Values(const std::vector<T>& values, int64_t shift = 0)
      : Values(static_cast<int64_t>(values.size()), shift) {
    guarded_.Write(values.data());
  }
  T* data() const { return reinterpret_cast<T*>(guarded_.data()); }
  std::vector<T> Read() const {
    const std::vector<char> bytes = guarded_.Bytes();
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(static_cast<void*>(values.data()), bytes.data(), bytes.size());
    return values;
  }

 private:
  Guarded guarded_;
};

/// Numbers of a type on the device.
class Numbers {
 public:
  Numbers(WeightType type, int64_t count, int64_t shift = 0);                     ///< NaN
  Numbers(WeightType type, const std::vector<float>& values, int64_t shift = 0);  ///< rounded

  void* data() const { return guarded_.data(); }
  /// The given number, rounded to the type.
  double at(int64_t i) const { return given_[static_cast<size_t>(i)]; }
  std::vector<double> Read() const;
  std::vector<char> Bytes() const { return guarded_.Bytes(); }

 private:
  WeightType type_;
  Guarded guarded_;
  std::vector<double> given_;
};

/// An expected number, and the difference allowed before rounding to its type.
struct Expected {
  double value;
  double error;
};
/// Compares all numbers. Prints only some of the failures.
void ExpectNear(WeightType type, const std::vector<double>& got,
                const std::function<Expected(int64_t)>& expected);

/// New numbers in every run. The environment variable EVALD_TEST_SEED repeats a run.
class KernelTest : public testing::Test {
 protected:
  KernelTest();

  double Normal(double deviation = 1);
  double Uniform();  ///< [0, 1)
  int64_t Below(int64_t end);
  std::vector<float> Normals(int64_t count, double deviation = 1);

  static const Stream& stream();

 private:
  uint64_t seed_;
  std::mt19937_64 generator_;
  testing::ScopedTrace trace_;
};

}  // namespace evald::native::cuda
