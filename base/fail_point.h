#pragma once

#include <string_view>

namespace evald {

/// For fault tests: kills this process with SIGKILL if the environment says so. Any thread may pass
/// a point. Without these variables, passing costs one test of a flag. docs/faults.md lists the
/// names.
///
///   EVALD_FAIL_POINT       "[program/]name[:n]": dies at the n-th passing (from 1) of the point,
///                          in processes of that program ("evald", "evald-worker", "evald-metric")
///                          or, without a program, in all that inherit the variable
///   EVALD_FAIL_POINT_ONCE  a file: only the process that removes the file dies. So one of several
///                          processes dies, and the process started in its place does not
///   EVALD_FAIL_POINT_LOG   a file to which each passing appends "program/name"
void FailPoint(std::string_view name);

}  // namespace evald
