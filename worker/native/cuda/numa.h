#pragma once

#include <vector>

namespace evald::native::cuda {

/// The processors of a NUMA node that this process may use. Returns all processors that the process
/// may use if the node is -1 or unknown, or has no such processor.
std::vector<int> CpusNear(int node);

/// Binds the calling thread to these processors; memory that it touches first then lies on their
/// node. If the kernel refuses, the thread is not bound: that is slower, not wrong.
void BindNear(const std::vector<int>& cpus);

}  // namespace evald::native::cuda
