#include "tests/unit/cuda/kernels_test_util.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace evald::native::cuda {
namespace {

constexpr int64_t kGuard = 256;  // bytes of a guard, and the alignment of memory
constexpr int kPoison = 0xFF;

Stream& TestStream() {
  static Stream stream;
  return stream;
}

uint64_t Seed() {
  const char* given = std::getenv("EVALD_TEST_SEED");
  if (given != nullptr) return std::strtoull(given, nullptr, 10);
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

int Digits(WeightType type) {
  return type == WeightType::kF32 ? 24 : type == WeightType::kF16 ? 11 : 8;
}

// The stored number, by the definition of its format.
double Decode(WeightType type, const char* from) {
  if (type == WeightType::kF32) {
    float value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  const int fraction_bits = Digits(type) - 1, exponent_bits = 15 - fraction_bits;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * HUGE_VAL : NAN;
  const int whole = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - fraction_bits);
}

// Stores a number that the type can represent.
void Encode(WeightType type, double value, char* to) {
  const auto single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  if (type == WeightType::kF32) {
    std::memcpy(to, &bits, sizeof(bits));
    return;
  }
  auto half = static_cast<uint16_t>(bits >> 16);
  if (type == WeightType::kF16) {
    const double size = std::fabs(value);
    int code = 0x7E00;  // NaN
    if (std::isinf(value)) {
      code = 0x7C00;
    } else if (size < 0x1p-14) {
      code = static_cast<int>(std::ldexp(size, 24));
    } else if (!std::isnan(value)) {
      const int exponent = std::ilogb(size);
      code = (exponent + 15) << 10 | (static_cast<int>(std::ldexp(size, 10 - exponent)) & 1023);
    }
    half = static_cast<uint16_t>(code | (std::signbit(value) ? 0x8000 : 0));
  }
  std::memcpy(to, &half, sizeof(half));
}

}  // namespace

std::string NameOf(WeightType type) {
  return type == WeightType::kF32 ? "fp32" : type == WeightType::kF16 ? "fp16" : "bf16";
}

int64_t BytesOf(WeightType type) { return type == WeightType::kF32 ? 4 : 2; }

double UnitOf(WeightType type) { return std::ldexp(1, -Digits(type)); }

double Rounded(WeightType type, double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int least = type == WeightType::kF16 ? -14 : -126;
  const int step = std::max(std::ilogb(value), least) - (Digits(type) - 1);
  return std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
}

Guarded::Guarded(int64_t bytes, int64_t shift)
    : bytes_(bytes),
      begin_(kGuard + shift),
      memory_(MemoryKind::kDevice, static_cast<size_t>(begin_ + bytes + kGuard)) {
  FillBytes(memory_.data(), kPoison, memory_.bytes(), TestStream());
}

void Guarded::Write(const void* from) {
  CopyToDevice(data(), from, static_cast<size_t>(bytes_), TestStream());
  TestStream().Synchronize();  // `from` may be freed afterwards
}

std::vector<char> Guarded::Bytes() const {
  std::vector<char> all(memory_.bytes());
  CopyToHost(all.data(), memory_.data(), all.size(), TestStream());
  TestStream().Synchronize();
  const auto begin = all.begin() + begin_, end = begin + bytes_;
  const auto whole = [](char c) { return c == static_cast<char>(kPoison); };
  EXPECT_TRUE(std::all_of(all.begin(), begin, whole)) << "written before the output";
  EXPECT_TRUE(std::all_of(end, all.end(), whole)) << "written behind the output";
  return {begin, end};
}

Numbers::Numbers(WeightType type, int64_t count, int64_t shift)
    : type_(type), guarded_(count * BytesOf(type), shift * BytesOf(type)) {}

Numbers::Numbers(WeightType type, const std::vector<float>& values, int64_t shift)
    : Numbers(type, static_cast<int64_t>(values.size()), shift) {
  const auto each = static_cast<size_t>(BytesOf(type));
  std::vector<char> bytes(values.size() * each);
  for (size_t i = 0; i < values.size(); ++i) {
    given_.push_back(Rounded(type, values[i]));
    Encode(type, given_.back(), bytes.data() + i * each);
  }
  guarded_.Write(bytes.data());
}

std::vector<double> Numbers::Read() const {
  const std::vector<char> bytes = Bytes();
  const auto each = static_cast<size_t>(BytesOf(type_));
  std::vector<double> numbers(bytes.size() / each);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = Decode(type_, bytes.data() + i * each);
  return numbers;
}

void ExpectNear(WeightType type, const std::vector<double>& got,
                const std::function<Expected(int64_t)>& expected) {
  // half the smallest subnormal number
  const double least = type == WeightType::kF16 ? 0x1p-25 : 0x1p-134;
  int failures = 0;
  for (size_t i = 0; i < got.size() && failures < 5; ++i) {
    const auto [value, error] = expected(static_cast<int64_t>(i));
    const double bound = error + UnitOf(type) * (std::fabs(value) + error) + least;
    if (std::fabs(got[i] - value) <= bound) continue;
    ADD_FAILURE() << NameOf(type) << " number " << i << " of " << got.size() << ": got " << got[i]
                  << ", expected " << value << " within " << bound;
    ++failures;
  }
}

KernelTest::KernelTest()
    : seed_(Seed()),
      generator_(seed_),
      trace_(__FILE__, __LINE__, "EVALD_TEST_SEED=" + std::to_string(seed_)) {}

double KernelTest::Normal(double deviation) {
  return std::normal_distribution<double>(0, deviation)(generator_);
}

double KernelTest::Uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }

int64_t KernelTest::Below(int64_t end) {
  return static_cast<int64_t>(generator_() % static_cast<uint64_t>(end));
}

std::vector<float> KernelTest::Normals(int64_t count, double deviation) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(Normal(deviation));
  return values;
}

const Stream& KernelTest::stream() { return TestStream(); }

}  // namespace evald::native::cuda
