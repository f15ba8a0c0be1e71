#pragma once

#include <string_view>

namespace evald {

/// For fault tests: kills this process with SIGKILL where the environment says. Any thread may
/// pass; without these variables a passing costs one test of a flag. docs/faults.md lists the
/// names.
///
///   EVALD_FAIL_POINT       "[program/]name[:n]": dies at the n-th passing (from 1) of the point, in
///                          processes of that program ("evald", "evald-worker", "evald-metric") or,
///                          without one, in all that inherit the variable
///   EVALD_FAIL_POINT_ONCE  a file: whoever removes it may die, so that of several processes, and of
///                          several lives of one, only one does
///   EVALD_FAIL_POINT_LOG   a file that "program/name" is appended to at each passing
void FailPoint(std::string_view name);

}  // namespace evald
