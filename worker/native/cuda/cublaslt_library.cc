#include "worker/native/cuda/cublaslt_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda {
namespace {

constexpr const char* kRemedy =
    "install cuBLAS 12 or 13, or set EVALD_CUBLASLT to the path of libcublasLt.so";

void* Open() {
  std::vector<std::string> names;
  if (const char* path = std::getenv("EVALD_CUBLASLT"); path != nullptr) {
    names = {path};
  } else {
    names = {"libcublasLt.so.13", "libcublasLt.so.12"};
  }
  std::string tried;
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      return library;
    }
    tried += (tried.empty() ? "" : "; ") + std::string(dlerror());
  }
  throw Error(ErrorKind::kInfrastructure, "cuBLASLt was not found: " + tried, kRemedy);
}

template <typename Function>
void Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function != nullptr) return;
  throw Error(ErrorKind::kInfrastructure, fmt::format("cuBLASLt has no function {}", name),
              kRemedy);
}

CublasLt Load() {
  void* library = Open();
  CublasLt found;
  Find(library, "cublasLtCreate", &found.Create);
  Find(library, "cublasLtDestroy", &found.Destroy);
  Find(library, "cublasLtGetVersion", &found.GetVersion);
  Find(library, "cublasLtGetStatusString", &found.GetStatusString);
  Find(library, "cublasLtMatmul", &found.Matmul);
  Find(library, "cublasLtMatmulDescCreate", &found.MatmulDescCreate);
  Find(library, "cublasLtMatmulDescDestroy", &found.MatmulDescDestroy);
  Find(library, "cublasLtMatmulDescSetAttribute", &found.MatmulDescSetAttribute);
  Find(library, "cublasLtMatrixLayoutCreate", &found.MatrixLayoutCreate);
  Find(library, "cublasLtMatrixLayoutDestroy", &found.MatrixLayoutDestroy);
  Find(library, "cublasLtMatrixLayoutSetAttribute", &found.MatrixLayoutSetAttribute);
  Find(library, "cublasLtMatmulPreferenceCreate", &found.MatmulPreferenceCreate);
  Find(library, "cublasLtMatmulPreferenceDestroy", &found.MatmulPreferenceDestroy);
  Find(library, "cublasLtMatmulPreferenceSetAttribute", &found.MatmulPreferenceSetAttribute);
  Find(library, "cublasLtMatmulAlgoGetHeuristic", &found.MatmulAlgoGetHeuristic);
  Find(library, "cublasLtMatmulAlgoConfigGetAttribute", &found.MatmulAlgoConfigGetAttribute);
  return found;
}

}  // namespace

void CublasLt::Check(lt::Status status, const char* doing) const {
  if (status == lt::kSuccess) return;
  DeviceFault fault = DeviceFault::kOther;
  if (status == lt::kAllocFailed) fault = DeviceFault::kOutOfMemory;
  if (status == lt::kExecutionFailed) fault = DeviceFault::kKernel;
  throw DeviceError(fault, fmt::format("cuBLASLt: {}: {}", doing, GetStatusString(status)));
}

const CublasLt& LoadCublasLt() {
  static const CublasLt library = Load();
  return library;
}

}  // namespace evald::native::cuda
