#include "worker/native/cpu.h"

#include <fmt/format.h>

#include "base/text.h"
#include "evald/error.h"

namespace evald::native {
namespace {

std::vector<const Kernels*> Available() {
  std::vector<const Kernels*> all;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (Avx512Kernels() != nullptr && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    all.push_back(Avx512Kernels());
  }
  // Every processor with AVX2 and FMA has F16C.
  if (Avx2Kernels() != nullptr && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    all.push_back(Avx2Kernels());
  }
#endif
  all.push_back(&PortableKernels());
  return all;
}

}  // namespace

std::vector<std::string> AvailableKernels() {
  std::vector<std::string> names;
  for (const Kernels* kernels : Available()) names.emplace_back(kernels->name);
  return names;
}

const Kernels& SelectKernels(const std::string& name) {
  const std::vector<const Kernels*> available = Available();
  if (name == "auto") return *available.front();
  for (const Kernels* kernels : available) {
    if (name == kernels->name) return *kernels;
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("engine.kernels: found '{}', expected auto, {}", name,
                          Join(AvailableKernels(), ", ")),
              "the list holds what this machine can run");
}

}  // namespace evald::native
