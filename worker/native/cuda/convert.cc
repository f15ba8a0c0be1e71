#include "worker/native/cuda/convert.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "worker/native/cpu.h"

namespace evald::native::cuda {
namespace {

// Weights are widened and narrowed in blocks that stay in the first cache.
constexpr uint64_t kBlock = 2048;

constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint32_t kSign = 0x80000000;

bool IsFinite(float value) { return (std::bit_cast<uint32_t>(value) & kInfinity) != kInfinity; }

template <uint16_t (*Narrow)(float), uint16_t infinity>
bool NarrowBlock(const float* from, uint64_t count, char* to) {
  bool fits = true;
  for (uint64_t i = 0; i < count; ++i) {
    const uint16_t narrow = Narrow(from[i]);
    fits = fits && ((narrow & 0x7fff) != infinity || !IsFinite(from[i]));
    std::memcpy(to + 2 * i, &narrow, sizeof narrow);
  }
  return fits;
}

bool WriteBlock(const float* from, uint64_t count, WeightType wanted, char* to) {
  switch (wanted) {
    case WeightType::kBF16:
      return NarrowBlock<ToBF16, 0x7f80>(from, count, to);
    case WeightType::kF16:
      return NarrowBlock<ToF16, 0x7c00>(from, count, to);
    case WeightType::kF32:
      break;
  }
  std::memcpy(to, from, count * sizeof(float));
  return true;
}

}  // namespace

uint16_t ToBF16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  // A NaN whose upper half alone would be an infinity gets a bit set there.
  if ((bits & ~kSign) > kInfinity) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t ToF16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits & kSign) >> 16);
  const uint32_t magnitude = bits & ~kSign;
  if (magnitude > kInfinity) return sign | 0x7e00;
  if (magnitude >= 0x477ff000)
    return sign | 0x7c00;        // 65520 and more: beyond half of the last step
  if (magnitude < 0x38800000) {  // below 2^-14: multiples of 2^-24
    // The sum's last bit is worth 2^-24, so that the addition rounds.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return static_cast<uint16_t>(sign | ((magnitude - (uint32_t{112} << 23) + 0xfff + odd) >> 13));
}

bool Convert(const char* from, WeightType stored, uint64_t count, WeightType wanted, char* to) {
  if (stored == wanted) {
    std::memcpy(to, from, count * ElementBytes(stored));
    return true;
  }
  static const Kernels& kernels = SelectKernels("auto");
  std::array<float, kBlock> block;
  bool fits = true;
  for (uint64_t i = 0; i < count; i += kBlock) {
    const uint64_t part = std::min(kBlock, count - i);
    kernels.widen(from + i * ElementBytes(stored), stored, static_cast<int64_t>(part),
                  block.data());
    fits = WriteBlock(block.data(), part, wanted, to + i * ElementBytes(wanted)) && fits;
  }
  return fits;
}

}  // namespace evald::native::cuda
