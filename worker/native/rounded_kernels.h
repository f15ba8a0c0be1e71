#pragma once

#include "worker/native/kernels.h"

namespace evald::native {

/// The kernels `base` with every output rounded to bf16 or fp16 (to nearest, ties to even), as a
/// model does that computes in this type: products, attention, norms, activations, rotations with
/// their cosines and sines, residual sums and logits. Sums within one step stay in fp32.
///
/// Answers are those of no engine to the bit. Their distance from fp32 is the distance that the
/// type explains for this model. Named rounded_bf16 and rounded_fp16. `base` is taken at the first
/// call; later calls must give the same.
const Kernels& RoundedToBf16(const Kernels& base);
const Kernels& RoundedToFp16(const Kernels& base);

}  // namespace evald::native
