#include "datasets/function_values.h"

#include <algorithm>

namespace evald {

const Json& FunctionValues::Value(const std::string& function, int64_t at, bool tuples_as_text) {
  Window& window = windows_[{function, tuples_as_text}];
  const auto size = static_cast<int64_t>(window.values.size());
  if (at < window.first || at >= window.first + size) {
    const int64_t wanted = std::min(batch_, std::max<int64_t>(1, count_ - at));
    window.values = code_->Apply(function, table_, at, wanted, tuples_as_text);
    window.first = at;
  }
  return window.values[static_cast<size_t>(at - window.first)];
}

}  // namespace evald
