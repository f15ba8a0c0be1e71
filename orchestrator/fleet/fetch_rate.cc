#include "orchestrator/fleet/fetch_rate.h"

#include <algorithm>

namespace evald {
namespace {

constexpr int64_t kShortestMicros = 1000;

double PerSecond(int64_t chunks, int64_t micros) {
  return 1e6 * static_cast<double>(std::max<int64_t>(chunks, 0)) /
         static_cast<double>(std::max(micros, kShortestMicros));
}

}  // namespace

void FetchRate::Begin(int64_t now_us, int64_t have) {
  told_ = from_ = next_ = now_ = {now_us, have};
}

// While nothing comes, the span grows. So a source that has stopped is seen, and a short pause is
// seen as what it is.
void FetchRate::Report(int64_t now_us, int64_t have) {
  if (have > next_.have && now_us - next_.us >= kSpanMicros) {
    from_ = next_;
    next_ = {now_us, have};
  }
  now_ = {now_us, have};
}

void FetchRate::Pause(int64_t now_us) { from_.us = next_.us = now_.us = now_us; }

std::optional<double> FetchRate::AtMost(int64_t under_way) const {
  if (now_.us - from_.us < kSpanMicros) return std::nullopt;
  return PerSecond(now_.have - from_.have + under_way, now_.us - from_.us);
}

std::optional<double> FetchRate::AtLeast(int64_t under_way) const { return AtMost(-under_way); }

void ServiceRates::Ended(int64_t chunks, int64_t micros) {
  if (chunks < kChunksMin) return;
  rates_.push_back(PerSecond(chunks, micros));
  if (rates_.size() > kKept) rates_.pop_front();
}

double ServiceRates::best() const {
  return rates_.empty() ? 0 : *std::max_element(rates_.begin(), rates_.end());
}

}  // namespace evald
