#pragma once

#include <string_view>
#include <vector>

namespace evald {

/// CPUs of a list such as "0-3,8", as the kernel writes them, white space around it apart; none for
/// what is not one.
std::vector<int> ParseCpuList(std::string_view text);

/// Binds the calling thread, and those it will start, to these CPUs. False, with errno, when the
/// kernel refuses.
bool BindThread(const std::vector<int>& cpus);

}  // namespace evald
