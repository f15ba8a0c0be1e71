#pragma once

#include <compare>
#include <cstdint>

namespace evald {

/// The key of a request within its task; the order of the lines of a generations file.
struct RequestKey {
  int64_t doc_id = 0;
  int idx = 0;
  int repeat = 0;
  auto operator<=>(const RequestKey&) const = default;
};

}  // namespace evald
