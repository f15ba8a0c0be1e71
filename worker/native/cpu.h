#pragma once

#include <string>
#include <vector>

#include "worker/native/kernels.h"

namespace evald::native {

/// Names of the kernels that this machine can run, the fastest first: avx512, avx2, portable.
std::vector<std::string> AvailableKernels();

/// The kernels of that name; "auto" for the fastest. Throws Error(kUsage) for a name that is not
/// known or that this machine cannot run.
const Kernels& SelectKernels(const std::string& name);

}  // namespace evald::native
