#pragma once

#include <string_view>
#include <vector>

namespace evald {

/// The CPUs of a list such as "0-3,8" in the kernel's form, with white space around it allowed.
/// Empty if the text is no such list.
std::vector<int> ParseCpuList(std::string_view text);

/// Binds the calling thread, and threads that it starts later, to these CPUs. False, with errno, if
/// the kernel refuses.
bool BindThread(const std::vector<int>& cpus);

}  // namespace evald
