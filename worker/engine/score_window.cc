#include "worker/engine/score_window.h"

#include <algorithm>

namespace evald {

using Tokens = std::vector<int32_t>;

ScoreWindow WindowOf(const Tokens& context, const Tokens& continuation, int max_length,
                     int* truncated) {
  Tokens all = context;
  all.insert(all.end(), continuation.begin(), continuation.end());
  const size_t kept = std::min(all.size(), static_cast<size_t>(max_length) + 1);
  *truncated = static_cast<int>(all.size() - kept);
  ScoreWindow window;
  window.tokens.assign(all.end() - static_cast<int64_t>(kept), all.end() - 1);
  window.targets = continuation;
  window.score_from = static_cast<int>(window.tokens.size() - continuation.size());
  return window;
}

std::vector<ScoreWindow> RollingWindows(const Tokens& all, int32_t prefix_token, int max_length) {
  std::vector<ScoreWindow> windows;
  const auto length = static_cast<size_t>(max_length);
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.size(), begin + length);
    Tokens context;
    if (begin == 0) {
      context = {prefix_token};
    } else {
      const auto first = static_cast<int64_t>(end - length) - 1;
      context.assign(all.begin() + first, all.begin() + static_cast<int64_t>(begin));
    }
    const Tokens scored(all.begin() + static_cast<int64_t>(begin),
                        all.begin() + static_cast<int64_t>(end));
    int dropped = 0;
    windows.push_back(WindowOf(context, scored, max_length, &dropped));
    begin = end;
  }
  return windows;
}

}  // namespace evald
