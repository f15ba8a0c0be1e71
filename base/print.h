#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <utility>

#include "base/text.h"

namespace evald {

/// Prints for people, formatted as by fmt::format. The values may come from anywhere, so characters
/// that a terminal would obey are spelled out (Printable). Output for programs is printed unchanged
/// by fmt::print.
template <typename... T>
void Print(std::FILE* to, fmt::format_string<T...> format, T&&... values) {
  fmt::print(to, "{}", Printable(fmt::format(format, std::forward<T>(values)...)));
}

template <typename... T>
void Print(fmt::format_string<T...> format, T&&... values) {
  Print(stdout, format, std::forward<T>(values)...);
}

}  // namespace evald
