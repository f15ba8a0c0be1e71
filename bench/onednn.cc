// Large products with oneDNN, as a limit of this machine. Empty if evald is built without oneDNN.
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

}  // namespace

// Times the product with the weights in the layout that oneDNN prefers.
double OneDnnRate(const OneDnnProduct& product, double seconds) {
  using dnnl::memory;
  const auto [m, n, k, bf16] = product;
  const Type type = bf16 ? Type::bf16 : Type::f32;
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
  const dnnl::matmul multiply(description);
  const auto run = [&] {
    multiply.execute(stream, {{DNNL_ARG_SRC, memories[0]},
                              {DNNL_ARG_WEIGHTS, memories[1]},
                              {DNNL_ARG_DST, memories[2]}});
    stream.wait();
  };
  run();
  const int64_t begin = MonotonicMicros();
  int64_t runs = 0, micros = 0;
  while (static_cast<double>(micros) < 1e6 * seconds) {
    run();
    ++runs;
    micros = MonotonicMicros() - begin;
  }
  return 2e-3 * static_cast<double>(m * n * k) * static_cast<double>(runs) /
         static_cast<double>(micros);
}

OneDnnProduct FastestOneDnnProduct() {
  OneDnnProduct fastest;
  double best = 0;
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{512, 4864, 896}, {512, 896, 4864}, {2048, 2048, 2048}}) {
    for (const bool bf16 : {false, true}) {
      const OneDnnProduct product{m, n, k, bf16};
      const double rate = OneDnnRate(product, 1);
      if (rate > best) fastest = product;
      best = std::max(best, rate);
    }
  }
  return fastest;
}

std::string OneDnnVersion() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace evald::bench

#else

namespace evald::bench {

OneDnnProduct FastestOneDnnProduct() { return {}; }
double OneDnnRate(const OneDnnProduct&, double) { return 0; }
std::string OneDnnVersion() { return ""; }

}  // namespace evald::bench

#endif
