#include "worker/native/cpu.h"

#include <fmt/format.h>

#include "base/text.h"
#include "evald/error.h"
#include "worker/native/rounded_kernels.h"

namespace evald::native {
namespace {

#if defined(__x86_64__)
bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

std::vector<const Kernels*> Available() {
  std::vector<const Kernels*> all;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (Avx512Kernels() != nullptr && HasAvx512()) all.push_back(Avx512Kernels());
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

bool HasBf16Products() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return Avx512Bf16Kernels() != nullptr && HasAvx512() && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

const Kernels& SelectKernels(const std::string& name) {
  std::vector<const Kernels*> known = Available();
  if (name == "auto") return *known.front();
  if (HasBf16Products()) known.push_back(Avx512Bf16Kernels());
  known.push_back(&RoundedToBf16(*known.front()));
  known.push_back(&RoundedToFp16(*known.front()));
  std::vector<std::string> names;
  for (const Kernels* kernels : known) {
    if (name == kernels->name) return *kernels;
    names.emplace_back(kernels->name);
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("engine.kernels: found '{}', expected auto, {}", name, Join(names, ", ")),
              "the list holds what this machine can run");
}

}  // namespace evald::native
