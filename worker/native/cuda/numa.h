#pragma once

#include <string>
#include <vector>

namespace evald::native::cuda {

/// Processors of a list such as "0-3,8", as the kernel writes them; none for what is not a list.
std::vector<int> ParseCpuList(const std::string& text);

/// Processors of a NUMA node that this process may use. All that it may use where the node is -1 or
/// unknown, or has none of them.
std::vector<int> CpusNear(int node);

/// Binds the calling thread to these; what it then touches first lies on their node. Where the
/// kernel refuses, it stays where it may be: that is slower, not wrong.
void BindThread(const std::vector<int>& cpus);

}  // namespace evald::native::cuda
