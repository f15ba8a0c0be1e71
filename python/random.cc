#include "python/random.h"

#include <bit>
#include <cmath>
#include <unordered_set>

#include "evald/error.h"

namespace evald {

PythonRandom::PythonRandom(int64_t seed) {
  uint64_t magnitude =
      seed < 0 ? uint64_t{0} - static_cast<uint64_t>(seed) : static_cast<uint64_t>(seed);
  std::vector<uint32_t> key = {static_cast<uint32_t>(magnitude)};
  if (magnitude >> 32 != 0) key.push_back(static_cast<uint32_t>(magnitude >> 32));
  SeedByArray(key);
}

// init_by_array of the reference implementation (mt19937ar.c).
void PythonRandom::SeedByArray(const std::vector<uint32_t>& key) {
  state_[0] = 19650218;
  for (uint32_t i = 1; i < kWords; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  size_t i = 1;
  const auto advance = [&] {
    if (++i == kWords) {
      state_[0] = state_[kWords - 1];
      i = 1;
    }
  };
  size_t j = 0;
  for (size_t k = std::max(kWords, key.size()); k > 0; --k) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525U)) + key[j] +
                static_cast<uint32_t>(j);
    advance();
    j = (j + 1) % key.size();
  }
  for (size_t k = kWords - 1; k > 0; --k) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941U)) -
                static_cast<uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000U;
  used_ = kWords;
}

void PythonRandom::Refill() {
  constexpr size_t kMiddle = 397;
  const auto twist = [this](size_t i, size_t next, size_t middle) {
    const uint32_t y = (state_[i] & 0x80000000U) | (state_[next] & 0x7fffffffU);
    state_[i] = state_[middle] ^ (y >> 1) ^ ((0U - (y & 1U)) & 0x9908b0dfU);
  };
  for (size_t i = 0; i < kWords - kMiddle; ++i) twist(i, i + 1, i + kMiddle);
  for (size_t i = kWords - kMiddle; i < kWords - 1; ++i) twist(i, i + 1, i + kMiddle - kWords);
  twist(kWords - 1, 0, kMiddle - 1);
  used_ = 0;
}

uint32_t PythonRandom::Next() {
  if (used_ == kWords) Refill();
  uint32_t y = state_[used_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

double PythonRandom::Random() {
  const uint32_t high = Next() >> 5;
  const uint32_t low = Next() >> 6;
  return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

uint64_t PythonRandom::GetRandBits(int k) {
  if (k < 0 || k > 64) throw Error(ErrorKind::kInternal, "GetRandBits takes 0 to 64 bits");
  if (k == 0) return 0;
  if (k <= 32) return Next() >> (32 - k);
  const uint64_t low = Next();
  return low | static_cast<uint64_t>(Next() >> (64 - k)) << 32;
}

uint64_t PythonRandom::RandBelow(uint64_t n) {
  if (n == 0) throw Error(ErrorKind::kInternal, "a random choice from nothing");
  const int bits = static_cast<int>(std::bit_width(n));
  uint64_t drawn = GetRandBits(bits);
  while (drawn >= n) drawn = GetRandBits(bits);
  return drawn;
}

int64_t PythonRandom::RandRange(int64_t start, int64_t stop) {
  if (start >= stop) throw Error(ErrorKind::kInternal, "a random number from an empty range");
  const uint64_t width = static_cast<uint64_t>(stop) - static_cast<uint64_t>(start);
  return static_cast<int64_t>(static_cast<uint64_t>(start) + RandBelow(width));
}

// Random.sample: a pool for small populations, a set of the drawn positions for large ones. The
// choice between them decides the numbers, so its threshold (set sizes of CPython 3.11) is part of
// the format.
std::vector<size_t> PythonRandom::SampleIndices(size_t n, size_t k) {
  if (k > n) throw Error(ErrorKind::kInternal, "a random sample larger than its population");
  std::vector<size_t> result(k);
  double pool_max = 21;
  if (k > 5) {
    pool_max += std::pow(4.0, std::ceil(std::log(static_cast<double>(k * 3)) / std::log(4.0)));
  }
  if (static_cast<double>(n) <= pool_max) {
    std::vector<size_t> pool(n);
    std::iota(pool.begin(), pool.end(), size_t{0});
    for (size_t i = 0; i < k; ++i) {
      const size_t j = RandBelow(n - i);
      result[i] = pool[j];
      pool[j] = pool[n - i - 1];
    }
    return result;
  }
  std::unordered_set<size_t> selected;
  for (size_t i = 0; i < k; ++i) {
    size_t j = RandBelow(n);
    while (!selected.insert(j).second) j = RandBelow(n);
    result[i] = j;
  }
  return result;
}

std::vector<size_t> PythonRandom::ChoiceIndices(size_t n, size_t k) {
  std::vector<size_t> result(k);
  ChoiceIndices(n, &result);
  return result;
}

void PythonRandom::ChoiceIndices(size_t n, std::vector<size_t>* out) {
  if (n == 0) throw Error(ErrorKind::kInternal, "a random choice from nothing");
  const double count = static_cast<double>(n);
  for (size_t& index : *out) index = static_cast<size_t>(Random() * count);
}

}  // namespace evald
