#include "bench/gpu/limits.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/clock.h"
#include "bench/run_evald.h"
#include "worker/native/cuda/products.h"
#include "worker/native/cuda/runtime.h"

namespace evald::bench {
namespace {

using namespace native;
using namespace native::cuda;

constexpr int kCopiesAtOnce = 4;  // queued between two looks at the clock

double SecondsSince(int64_t begin) { return static_cast<double>(MonotonicMicros() - begin) / 1e6; }

double PinnedRateOn(int streams, const LimitSizes& sizes) {
  std::vector<std::unique_ptr<Stream>> queues;
  std::vector<Memory> from, to;
  for (int i = 0; i < streams; ++i) {
    queues.push_back(std::make_unique<Stream>());
    from.emplace_back(MemoryKind::kPinned, sizes.copy_bytes);
    to.emplace_back(MemoryKind::kDevice, sizes.copy_bytes);
    std::memset(from.back().data(), i + 1, sizes.copy_bytes);
  }
  const auto round = [&](int copies) {
    for (int i = 0; i < streams; ++i) {
      for (int copy = 0; copy < copies; ++copy) {
        CopyToDevice(to[i].data(), from[i].data(), sizes.copy_bytes, *queues[i]);
      }
    }
    for (auto& queue : queues) queue->Synchronize();
  };
  round(1);
  const int64_t begin = MonotonicMicros();
  double bytes = 0;
  do {
    round(kCopiesAtOnce);
    bytes += static_cast<double>(streams) * kCopiesAtOnce * static_cast<double>(sizes.copy_bytes);
  } while (SecondsSince(begin) < sizes.seconds / 3);
  return bytes / SecondsSince(begin);
}

}  // namespace

Memory RandomNumbers(uint64_t bytes, uint64_t seed) {
  const Memory host(MemoryKind::kPinned, bytes);
  std::mt19937_64 generator(seed);
  auto* const numbers = host.as<uint16_t>();
  for (uint64_t i = 0; i < bytes / 2; ++i) {
    const float value = static_cast<float>(generator() >> 40) / static_cast<float>(1 << 23) - 1;
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    numbers[i] = static_cast<uint16_t>(bits >> 16);
  }
  Memory device(MemoryKind::kDevice, bytes);
  Stream stream;
  CopyToDevice(device.data(), host.data(), bytes, stream);
  stream.Synchronize();
  return device;
}

double PinnedRate(const LimitSizes& sizes) {
  double best = 0;
  for (const int streams : {1, 2, 4}) best = std::max(best, PinnedRateOn(streams, sizes));
  return best;
}

double MemoryRate(const LimitSizes& sizes) {
  Stream stream;
  const uint64_t bytes = 8 * sizes.copy_bytes;  // much more than the chip's caches hold
  const Memory from(MemoryKind::kDevice, bytes), to(MemoryKind::kDevice, bytes);
  FillBytes(from.data(), 1, bytes, stream);
  FillBytes(to.data(), 2, bytes, stream);
  Event begin(true), end(true);
  double best = 0;
  const int64_t started = MonotonicMicros();
  do {
    begin.Record(stream);
    for (int copy = 0; copy < kCopiesAtOnce; ++copy) {
      CopyOnDevice(to.data(), from.data(), bytes, stream);
    }
    end.Record(stream);
    end.Synchronize();
    best = std::max(best,
                    2.0 * kCopiesAtOnce * static_cast<double>(bytes) / SecondsBetween(begin, end));
  } while (SecondsSince(started) < sizes.seconds);
  return best;
}

double MatrixRate(const LimitSizes& sizes) {
  constexpr int kProductsAtOnce = 8;
  const int64_t size = sizes.matrix;
  Stream stream;
  const std::unique_ptr<Products> products = MakeProducts(true);
  products->Prepare({{WeightType::kBF16, WeightType::kBF16, size, size, size}}, stream);
  const auto rows = static_cast<uint64_t>(std::max(size, products->RowsFor(size)));
  const auto row_bytes = static_cast<uint64_t>(size) * 2;
  const Memory weights = RandomNumbers(static_cast<uint64_t>(size) * row_bytes, 1);
  const Memory x = RandomNumbers(rows * row_bytes, 2);
  const Memory y(MemoryKind::kDevice, rows * row_bytes);
  const Product product = {WeightType::kBF16, weights.data(), x.data(), y.data(),
                           WeightType::kBF16, size,           size,     size};
  Event begin(true), end(true);
  std::vector<double> rates;
  const int64_t started = MonotonicMicros();
  do {
    begin.Record(stream);
    for (int i = 0; i < kProductsAtOnce; ++i) products->Multiply(product, stream);
    end.Record(stream);
    end.Synchronize();
    const double operations = 2.0 * kProductsAtOnce * static_cast<double>(size) *
                              static_cast<double>(size) * static_cast<double>(size);
    rates.push_back(operations / SecondsBetween(begin, end));
  } while (SecondsSince(started) < sizes.seconds || rates.size() < 3);
  return Median({rates.begin() + 1, rates.end()});  // the first one warms up
}

}  // namespace evald::bench
