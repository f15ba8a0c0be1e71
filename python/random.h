#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace evald {

/// CPython's `random.Random`, number for number: MT19937 (Matsumoto and Nishimura, 1998) seeded
/// like CPython 3.11, with the draws of Lib/random.py on top. lm-evaluation-harness uses it to
/// choose few-shot examples and bootstrap samples. One thread at a time.
class PythonRandom {
 public:
  /// `random.Random(seed)` for an integer; the sign is dropped, as in CPython.
  explicit PythonRandom(int64_t seed);

  /// `random()`: 53 random bits as a double in [0, 1).
  double Random();
  /// `getrandbits(k)` for k in [0, 64].
  uint64_t GetRandBits(int k);
  /// `_randbelow(n)`: uniform in [0, n), n > 0.
  uint64_t RandBelow(uint64_t n);
  /// `randrange(start, stop)`; start < stop.
  int64_t RandRange(int64_t start, int64_t stop);

  /// The positions that `sample(population, k)` takes from a population of n; k <= n.
  std::vector<size_t> SampleIndices(size_t n, size_t k);
  /// The positions that `choices(population, k=k)` takes from a population of n > 0.
  std::vector<size_t> ChoiceIndices(size_t n, size_t k);
  /// The same; k is the size of `out`.
  void ChoiceIndices(size_t n, std::vector<size_t>* out);

  /// `shuffle(items)`.
  template <typename T>
  void Shuffle(std::vector<T>* items) {
    for (size_t i = items->size(); i-- > 1;) std::swap((*items)[i], (*items)[RandBelow(i + 1)]);
  }

 private:
  static constexpr size_t kWords = 624;
  void SeedByArray(const std::vector<uint32_t>& key);
  void Refill();
  uint32_t Next();

  std::array<uint32_t, kWords> state_{};
  size_t used_ = kWords;
};

}  // namespace evald
