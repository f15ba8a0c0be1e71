#include "http_server/rate_limit.h"

#include <algorithm>

namespace evald::http {

double RateLimit::Filled(const Bucket& bucket, int64_t now_us) const {
  const double elapsed_s = static_cast<double>(std::max<int64_t>(0, now_us - bucket.at_us)) * 1e-6;
  return std::min(burst_, bucket.tokens + elapsed_s * per_second_);
}

void RateLimit::Forget(int64_t now_us) {
  std::erase_if(buckets_,
                [&](const auto& entry) { return Filled(entry.second, now_us) >= burst_; });
  if (buckets_.size() >= clients_max_) buckets_.clear();
}

double RateLimit::Take(const std::string& client, int64_t now_us) {
  auto found = buckets_.find(client);
  if (found == buckets_.end()) {
    if (buckets_.size() >= clients_max_) Forget(now_us);
    found = buckets_.emplace(client, Bucket{burst_, now_us}).first;
  }
  Bucket& bucket = found->second;
  bucket.tokens = Filled(bucket, now_us);
  bucket.at_us = now_us;
  if (bucket.tokens < 1) return (1 - bucket.tokens) / per_second_;
  bucket.tokens -= 1;
  return 0;
}

}  // namespace evald::http
