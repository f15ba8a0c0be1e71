#pragma once

#include "worker/native/cuda/kernels.h"

/// What the kernels behind AnswerRows hand to each other.
namespace evald::native::cuda {

/// What is known of a row of logits, or of a stretch of one, after it was read once. `sum` is that
/// of exp((x - largest) / temperature) where it is asked for: in double precision for a target
/// (whose temperature is 1), else a rough one.
struct Outline {
  float largest;  ///< NaN where one is
  int32_t place;  ///< of the first of the largest
  int32_t below;  ///< no value is NaN or plus infinity
  int32_t padding;
  double sum;
};

/// Chooses the token of the rows that are to be sampled. `rows` are their outlines.
void SampleRows(const AnswerArgs& args, const Outline* rows, const Stream& stream);

}  // namespace evald::native::cuda
