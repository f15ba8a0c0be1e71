#pragma once

#include "worker/native/cuda/kernels.h"

/// The data that AnswerRows' kernels hand to each other.
namespace evald::native::cuda {

/// The outline of a row of logits, or of a stretch of one, after it was read once. `sum`, if asked
/// for, is that of exp((x - largest) / temperature): in double precision for a target (whose
/// temperature is 1), otherwise a rough one.
struct Outline {
  float largest;  ///< NaN if any value is
  int32_t place;  ///< the first place of the largest value
  int32_t below;  ///< no value is NaN or plus infinity
  int32_t padding;
  double sum;
};

/// Chooses the token of each row that is to be sampled. `rows` are the rows' outlines.
void SampleRows(const AnswerArgs& args, const Outline* rows, const Stream& stream);

}  // namespace evald::native::cuda
