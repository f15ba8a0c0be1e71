// The fastest large products that oneDNN gives on this machine; without it, nothing.
#include "bench/engine_bench.h"

#ifdef EVALD_BENCH_ONEDNN

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <dnnl.hpp>
#include <vector>

#include "base/clock.h"

namespace evald::bench {
namespace {

using Type = dnnl::memory::data_type;

constexpr int64_t kMicros = 1'000'000;  // of one measurement: a rate that lasts, as a prompt's must

// GFLOP/s of [m][k] times [k][n], with the weights in the layout that oneDNN likes best.
double Measure(int64_t m, int64_t n, int64_t k, Type type) {
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc x({m, k}, type, memory::format_tag::ab),
      w({k, n}, type, memory::format_tag::any), y({m, n}, Type::f32, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, w, y), engine);
  std::vector<memory> memories;
  for (const memory::desc& d :
       {description.src_desc(), description.weights_desc(), description.dst_desc()}) {
    memories.emplace_back(d, engine);
    std::memset(memories.back().get_data_handle(), 0, d.get_size());
  }
  const dnnl::matmul product(description);
  const auto run = [&] {
    product.execute(stream, {{DNNL_ARG_SRC, memories[0]},
                             {DNNL_ARG_WEIGHTS, memories[1]},
                             {DNNL_ARG_DST, memories[2]}});
    stream.wait();
  };
  run();
  const int64_t begin = MonotonicMicros();
  int64_t runs = 0, micros = 0;
  while (micros < kMicros) {
    run();
    ++runs;
    micros = MonotonicMicros() - begin;
  }
  return 2e-3 * static_cast<double>(m * n * k) * static_cast<double>(runs) /
         static_cast<double>(micros);
}

}  // namespace

OneDnn MeasureOneDnn() {
  OneDnn best;
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{512, 4864, 896}, {512, 896, 4864}, {2048, 2048, 2048}}) {
    best.fp32 = std::max(best.fp32, Measure(m, n, k, Type::f32));
    best.bf16 = std::max(best.bf16, Measure(m, n, k, Type::bf16));
  }
  return best;
}

std::string OneDnnVersion() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace evald::bench

#else

namespace evald::bench {

OneDnn MeasureOneDnn() { return {}; }
std::string OneDnnVersion() { return ""; }

}  // namespace evald::bench

#endif
