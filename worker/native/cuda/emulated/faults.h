#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda::emulated {

/// A failure that a test ordered: "gpu:kind:calls" makes a call fail after so many calls to this
/// GPU's runtime. Kinds: `oom` the next allocation of device memory from then on, once; `other`
/// that call, once; `lost`, `ecc` and `kernel` that call and all after it.
struct OrderedFault {
  int gpu = 0;
  DeviceFault fault = DeviceFault::kOther;
  int64_t after = 0;
};

/// One or several, separated by commas. Throws Error(kUsage) if the text cannot be read.
std::vector<OrderedFault> ParseFaults(const std::string& text);

/// Replaces the faults that were ordered before, by this function or by EVALD_EMULATED_FAULT, and
/// counts calls from 0. Broken GPUs work again.
void OrderFaults(const std::string& text);

/// The number of calls to the runtime so far, to choose the call that fails.
int64_t CallsOf(int gpu);

}  // namespace evald::native::cuda::emulated
