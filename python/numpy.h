#pragma once

#include <cstddef>
#include <vector>

// Arithmetic of numpy 2 and CPython 3.11 on which scores depend to the last bit.
namespace evald {

/// `np.sum` of contiguous float64: pairwise, in blocks of 128 with eight accumulators (numpy,
/// "Notes" of numpy.sum; loops_utils.h.src).
double PairwiseSum(const double* values, size_t count);

/// `x ** 2` of Python floats and numpy scalars: the C library's pow, which is not always x * x.
double PythonSquare(double x);

/// `np.argmax`: the first of the largest, or the first NaN if there is one. Not empty.
size_t ArgMax(const std::vector<double>& values);

/// lm_eval.utils.softmax: exp(x - max) / sum. numpy's own vectorised exp may differ from the C
/// library's in the last bit, depending on the machine on which numpy runs.
std::vector<double> Softmax(const std::vector<double>& values);

}  // namespace evald
