#pragma once

#include <vector>

namespace evald::native::cuda {

/// Processors of a NUMA node that this process may use. All that it may use where the node is -1 or
/// unknown, or has none of them.
std::vector<int> CpusNear(int node);

/// Binds the calling thread to these; what it then touches first lies on their node. Where the
/// kernel refuses, it stays where it may be: that is slower, not wrong.
void BindNear(const std::vector<int>& cpus);

}  // namespace evald::native::cuda
