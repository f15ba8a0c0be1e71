#pragma once

#include <string>
#include <vector>

#include "worker/native/kernels.h"

namespace evald::native {

/// Names of the kernels that this machine can run and that compute in fp32 throughout, fastest
/// first: avx512, avx2, portable.
std::vector<std::string> AvailableKernels();

/// Whether this machine can also run avx512_bf16: products of bf16 weights with activations rounded
/// to bf16, by the processor's own instruction. It is chosen only by name, since its numbers are
/// less exact.
bool HasBf16Products();

/// The kernels with that name; for "auto" the first of AvailableKernels. rounded_bf16 and
/// rounded_fp16 are those of "auto" with rounded outputs (rounded_kernels.h). Throws Error(kUsage)
/// for an unknown name, and for one that this machine cannot run.
const Kernels& SelectKernels(const std::string& name);

}  // namespace evald::native
