#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda::emulated {

/// A failure that a test ordered: "gpu:kind:calls" makes the call after so many calls to the
/// runtime of this GPU fail. Kinds: `oom` the next allocation of device memory from then on, once;
/// `other` that call, once; `lost`, `ecc` and `kernel` that call and all after it.
struct OrderedFault {
  int gpu = 0;
  DeviceFault fault = DeviceFault::kOther;
  int64_t after = 0;
};

/// One or several, with commas between them. Throws Error(kUsage) where it cannot be read.
std::vector<OrderedFault> ParseFaults(const std::string& text);

/// Takes the place of what was ordered before, by this or by EVALD_EMULATED_FAULT, and counts calls
/// from 0. GPUs that were broken work again.
void OrderFaults(const std::string& text);

/// Calls to the runtime so far, for choosing where a fault falls.
int64_t CallsOf(int gpu);

}  // namespace evald::native::cuda::emulated
