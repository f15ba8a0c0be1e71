#include "worker/native/cuda/products.h"

#include <algorithm>
#include <memory>

#include "bench/gpu/gpu_bench.h"

namespace evald::bench {
namespace {

using namespace native;
using namespace native::cuda;

struct Shape {
  const char* name;
  int64_t outputs;
  int64_t inputs;
};
// The matrices of Llama-3-8B.
constexpr Shape kShapes[] = {{"qkv", 6144, 4096},
                             {"output", 4096, 4096},
                             {"gate and up", 28672, 4096},
                             {"down", 4096, 14336},
                             {"head", 128256, 4096}};

// Operations/s of one product for each number of rows.
Json Rates(Products* products, const Shape& shape, const std::vector<int64_t>& rows_list,
           const Options& options) {
  const int64_t shrink = options.quick ? 64 : 1;
  const int64_t outputs = shape.outputs / shrink, inputs = shape.inputs / shrink;
  const int64_t rows_max = *std::max_element(rows_list.begin(), rows_list.end());
  Stream stream;
  products->Prepare({{WeightType::kBF16, WeightType::kBF16, outputs, inputs, rows_max}}, stream);
  const auto padded = static_cast<uint64_t>(std::max(rows_max, products->RowsFor(rows_max)));
  const Memory weights = RandomNumbers(static_cast<uint64_t>(outputs * inputs) * 2, 1);
  const Memory x = RandomNumbers(padded * static_cast<uint64_t>(inputs) * 2, 2);
  const Memory y(MemoryKind::kDevice, padded * static_cast<uint64_t>(outputs) * 2);
  Event begin(true), end(true);
  Json rates = Json::object();
  for (const int64_t rows : rows_list) {
    const Product product = {WeightType::kBF16, weights.data(), x.data(), y.data(),
                             WeightType::kBF16, rows,           outputs,  inputs};
    const int rounds = options.quick ? 1 : 50;
    products->Multiply(product, stream);
    begin.Record(stream);
    for (int i = 0; i < rounds; ++i) products->Multiply(product, stream);
    end.Record(stream);
    end.Synchronize();
    const double seconds = SecondsBetween(begin, end) / rounds;
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(outputs) *
                         static_cast<double>(inputs);
    rates[std::to_string(rows)] = {
        {"us", seconds * 1e6},
        {"tflops", flops / seconds / 1e12},
        {"weights_gb_per_s", static_cast<double>(weights.bytes()) / seconds / 1e9}};
  }
  return rates;
}

}  // namespace

// The cost of keeping each row's bits independent of the batch, by shape and number of rows.
Result RunProducts(const Options& options) {
  UseBenchGpu(options);
  const std::vector<int64_t> rows =
      options.quick ? std::vector<int64_t>{1, 16}
                    : std::vector<int64_t>{1, 16, 64, 128, 256, 512, 1024, 4096, 8192};
  Json details = Json::object();
  double seconds[2] = {0, 0};
  for (const bool fast : {false, true}) {
    const std::unique_ptr<Products> products = MakeProducts(fast);
    Json shapes = Json::object();
    for (const Shape& shape : kShapes) {
      shapes[shape.name] = Rates(products.get(), shape, rows, options);
      seconds[fast ? 1 : 0] +=
          shapes[shape.name][std::to_string(rows.back())]["us"].get<double>() / 1e6;
    }
    details[fast ? "fast" : "invariant"] = {{"rates", shapes}, {"chosen", products->Report()}};
  }
  Result result;
  result.unit = "s";
  result.smaller_is_better = true;
  result.value = seconds[0];
  result.baseline = "the library's own choice; one layer and the head, the most rows";
  result.baseline_value = seconds[1];
  result.target = 0;  // no target: the figure is the cost of invariance
  result.details = details;
  return result;
}

}  // namespace evald::bench
