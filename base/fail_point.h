#pragma once

#include <string_view>

namespace evald {

/// For fault tests: kills this process with SIGKILL where EVALD_FAIL_POINT says. The variable is
/// "name" or "name:n", which dies at the n-th passing (from 1) of the point of that name. Without
/// the variable a passing costs one test of a flag. Any thread may pass.
void FailPoint(std::string_view name);

}  // namespace evald
