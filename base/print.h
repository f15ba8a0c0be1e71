#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/text.h"

namespace evald {

/// A value of Print: texts on one line (PrintableLine), everything else as it is.
template <typename T>
decltype(auto) PrintedValue(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return PrintableLine(value);
  } else {
    return (value);
  }
}
template <typename T>
using Printed = decltype(PrintedValue(std::declval<const std::remove_reference_t<T>&>()));

/// Prints for people, formatted as by fmt::format. The values may come from anywhere, so line
/// breaks and other characters that a terminal would obey are spelled out (PrintableLine): no value
/// can forge a line of output. Output for programs is printed unchanged by fmt::print. Throws
/// std::system_error if it cannot be written. Standard error is no result: what cannot be written
/// there, to a log on a full disk, is dropped, and the work goes on.
template <typename... T>
void Print(std::FILE* to, fmt::format_string<Printed<T>...> format, T&&... values) {
  const std::string text = Printable(fmt::format(format, PrintedValue(values)...));
  if (to == stderr) {
    (void)!std::fwrite(text.data(), 1, text.size(), to);
  } else {
    fmt::print(to, "{}", text);
  }
}

template <typename... T>
void Print(fmt::format_string<Printed<T>...> format, T&&... values) {
  fmt::print("{}", Printable(fmt::format(format, PrintedValue(values)...)));
}

/// Prints text of several lines for people, whose own parts are on one line each (a table, a
/// report).
inline void PrintLines(std::string_view text) { fmt::print("{}", Printable(text)); }

}  // namespace evald
