#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <utility>

#include "base/text.h"

namespace evald {

/// Prints for people, formatted as by fmt::format. The values may come from anywhere: what a
/// terminal would obey is written out (Printable). What programs read is printed as it is, by
/// fmt::print.
template <typename... T>
void Print(std::FILE* to, fmt::format_string<T...> format, T&&... values) {
  fmt::print(to, "{}", Printable(fmt::format(format, std::forward<T>(values)...)));
}

template <typename... T>
void Print(fmt::format_string<T...> format, T&&... values) {
  Print(stdout, format, std::forward<T>(values)...);
}

}  // namespace evald
