#pragma once

#include <string>
#include <string_view>

namespace evald {

/// Whether a program's output is the expected one, as LiveCodeBench compares them
/// (lcb_runner/evaluation/testing_util.py): line by line, without white space at the ends of the
/// text and of each line. Two lines are also equal if both consist of numbers between white space
/// whose values are equal, as Python's `Decimal` has them. Both are UTF-8. If they differ, `why`
/// says where, with the beginnings of both lines.
bool SameOutput(std::string_view found, std::string_view expected, std::string* why);

/// SHA-256 of an output's lines without that white space: outputs of one hash are the same.
std::string HashOfOutput(std::string_view output);

/// Whether both are numbers for `Decimal`, and equal. NaN equals nothing.
bool SameDecimal(std::string_view a, std::string_view b);

}  // namespace evald
