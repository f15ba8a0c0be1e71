// A library with cuBLASLt's functions and known algorithms. It computes on the emulated device, so
// the choice of algorithms can be tested without a GPU. Its algorithms, in the order in which they
// are recommended:
//   1 splits sums and says so        4 the same order as 3, slower
//   2 another order, only few rows   5 splits sums if there are many rows, and does not say so
//   3 from the first input on        6 the same order as 3, fast, but not for many rows
// The environment variable EVALD_TEST_CUBLASLT_QUIRK makes the library worse. With "many", all
// algorithms split sums of more than 512 rows. With "few", 3 and 6 sum in the opposite order up to
// 8 rows; 4 and 5 are not recommended for so few rows, although 4 computes them.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "worker/native/cuda/cublaslt_abi.h"
#include "worker/native/cuda/emulated/device.h"
#include "worker/native/cuda/runtime.h"

namespace {

using evald::native::cuda::Stream;
using namespace evald::native::cuda::lt;

struct Layout {
  DataType type;
  uint64_t rows, columns;
};

constexpr uint64_t kFewRows = 64;

bool Quirk(std::string_view which) {
  const char* set = std::getenv("EVALD_TEST_CUBLASLT_QUIRK");
  return set != nullptr && which == set;
}

bool Computes(uint64_t id, uint64_t rows) {
  return id == 2 || id == 6 ? rows <= kFewRows : id >= 1 && id <= 6;
}

float Sum(uint64_t id, uint64_t rows, const float* w, const float* x, uint64_t inputs) {
  const bool split = id == 1 || (id == 5 && rows > 16) || (Quirk("many") && rows > 512);
  const bool backwards = id == 2 || ((id == 3 || id == 6) && Quirk("few") && rows <= 8);
  const uint64_t middle = split ? inputs / 2 : inputs;
  float first = 0, second = 0;
  for (uint64_t i = 0; i < middle; ++i) {
    const uint64_t at = backwards ? inputs - 1 - i : i;
    first += w[at] * x[at];
  }
  for (uint64_t i = middle; i < inputs; ++i) second += w[i] * x[i];
  return first + second;
}

std::chrono::microseconds Takes(uint64_t id) {
  return std::chrono::microseconds(id == 4 ? 3000 : id == 6 ? 0 : 1000);
}

}  // namespace

extern "C" {

Status cublasLtCreate(Handle* handle) {
  *handle = nullptr;
  return kSuccess;
}
Status cublasLtDestroy(Handle) { return kSuccess; }
size_t cublasLtGetVersion() { return 1; }
const char* cublasLtGetStatusString(Status) { return "a status"; }

Status cublasLtMatmulDescCreate(MatmulDesc* desc, Compute compute, DataType scale) {
  *desc = nullptr;
  return compute == kCompute32F && scale == kR32F ? kSuccess : kNotSupported;
}
Status cublasLtMatmulDescDestroy(MatmulDesc) { return kSuccess; }
Status cublasLtMatmulDescSetAttribute(MatmulDesc, MatmulDescAttribute attribute, const void* value,
                                      size_t) {
  return attribute == kTransA && *static_cast<const Operation*>(value) == kTransposed
             ? kSuccess
             : kNotSupported;
}

Status cublasLtMatrixLayoutCreate(MatrixLayout* layout, DataType type, uint64_t rows,
                                  uint64_t columns, int64_t ld) {
  if (type != kR32F || ld != static_cast<int64_t>(rows)) return kNotSupported;
  *layout = reinterpret_cast<MatrixLayout>(new Layout{type, rows, columns});
  return kSuccess;
}
Status cublasLtMatrixLayoutDestroy(MatrixLayout layout) {
  delete reinterpret_cast<Layout*>(layout);
  return kSuccess;
}
Status cublasLtMatrixLayoutSetAttribute(MatrixLayout layout, LayoutAttribute attribute,
                                        const void* value, size_t) {
  if (attribute != kColumns) return kNotSupported;
  reinterpret_cast<Layout*>(layout)->columns = *static_cast<const uint64_t*>(value);
  return kSuccess;
}

Status cublasLtMatmulPreferenceCreate(Preference* preference) {
  *preference = nullptr;
  return kSuccess;
}
Status cublasLtMatmulPreferenceDestroy(Preference) { return kSuccess; }
Status cublasLtMatmulPreferenceSetAttribute(Preference, PreferenceAttribute, const void*, size_t) {
  return kSuccess;
}

Status cublasLtMatmulAlgoGetHeuristic(Handle, MatmulDesc, MatrixLayout, MatrixLayout x,
                                      MatrixLayout, MatrixLayout, Preference, int count,
                                      HeuristicResult* results, int* found) {
  const uint64_t rows = reinterpret_cast<Layout*>(x)->columns;
  *found = 0;
  for (uint64_t id = 1; id <= 6 && *found < count; ++id) {
    if (!Computes(id, rows) || ((id == 4 || id == 5) && Quirk("few") && rows <= 8)) continue;
    HeuristicResult result = {};
    result.algorithm.data[0] = id;
    result.status = kSuccess;
    results[(*found)++] = result;
  }
  return kSuccess;
}

Status cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm,
                                            AlgorithmAttribute attribute, void* value, size_t size,
                                            size_t* written) {
  const uint64_t id = algorithm->data[0];
  uint64_t found = 0;
  if (attribute == kId) found = id;
  if (attribute == kSplitK) found = id == 1 ? 2 : 1;
  std::copy_n(reinterpret_cast<const char*>(&found), size, static_cast<char*>(value));
  *written = size;
  return kSuccess;
}

Status cublasLtMatmul(Handle, MatmulDesc, const void*, const void* weights,
                      MatrixLayout weights_layout, const void* x, MatrixLayout x_layout,
                      const void*, const void*, MatrixLayout, void* y, MatrixLayout,
                      const Algorithm* algorithm, void*, size_t, CudaStream stream) {
  const Layout w = *reinterpret_cast<Layout*>(weights_layout);
  const uint64_t rows = reinterpret_cast<Layout*>(x_layout)->columns, id = algorithm->data[0];
  if (!Computes(id, rows)) return kNotSupported;
  void* handle = stream;  // a Stream holds nothing else
  evald::native::cuda::emulated::Enqueue(*reinterpret_cast<const Stream*>(&handle), [=] {
    const auto* xs = static_cast<const float*>(x);
    const auto* ws = static_cast<const float*>(weights);
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t o = 0; o < w.columns; ++o) {
        static_cast<float*>(y)[row * w.columns + o] =
            Sum(id, rows, ws + o * w.rows, xs + row * w.rows, w.rows);
      }
    }
    std::this_thread::sleep_for(Takes(id));
  });
  return kSuccess;
}

}  // extern "C"
