#include "orchestrator/simulate/spans.h"

#include <algorithm>
#include <cstring>

namespace evald {
namespace {

bool Generates(const SimSpan& span) { return std::strcmp(span.name, "generate") == 0; }

// Generation gives way to everything else, and to the generation before it.
std::vector<SimSpan> Disjoint(std::vector<SimSpan> spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const SimSpan& a, const SimSpan& b) {
    return a.begin != b.begin ? a.begin < b.begin : Generates(b) && !Generates(a);
  });
  std::vector<SimSpan> disjoint;
  double until = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    SimSpan span = spans[i];
    span.begin = std::max(span.begin, until);
    if (Generates(span)) {
      // The spans within this one come first: its own start, load and preparation.
      for (size_t j = i + 1; j < spans.size() && spans[j].begin < span.end; ++j) {
        if (Generates(spans[j])) continue;
        if (spans[j].begin > span.begin) {
          disjoint.push_back(span);
          disjoint.back().end = spans[j].begin;
        }
        disjoint.push_back(spans[j]);
        disjoint.back().begin = std::max(spans[j].begin, span.begin);
        span.begin = std::max(span.begin, spans[j].end);
      }
    }
    if (span.end > span.begin) disjoint.push_back(span);
    until = std::max({until, span.begin, span.end});
  }
  std::erase_if(disjoint, [](const SimSpan& span) { return span.end <= span.begin; });
  return disjoint;
}

}  // namespace

std::vector<std::vector<SimSpan>> SpansByDevice(const std::vector<SimSpan>& spans, int devices) {
  std::vector<std::vector<SimSpan>> by_device(static_cast<size_t>(devices));
  for (const SimSpan& span : spans) by_device[static_cast<size_t>(span.device)].push_back(span);
  for (std::vector<SimSpan>& one : by_device) one = Disjoint(std::move(one));
  return by_device;
}

std::vector<int> ShownDevices(int devices, int most) {
  std::vector<int> shown;
  const int count = std::min(devices, most);
  for (int i = 0; i < count; ++i) shown.push_back(static_cast<int>(int64_t{i} * devices / count));
  return shown;
}

}  // namespace evald
