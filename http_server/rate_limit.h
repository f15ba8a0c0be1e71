#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace evald::http {

/// A token bucket per client: `per_second` requests on average, `burst` at once. Knows at most
/// `clients_max` clients. If more come, clients with full buckets are forgotten, then all. No clock
/// of its own; one thread at a time.
class RateLimit {
 public:
  RateLimit(double per_second, double burst, size_t clients_max = 10'000)
      : per_second_(per_second), burst_(burst), clients_max_(clients_max) {}

  /// Takes one request of `client` at `now_us` (any steady clock, microseconds). Returns 0 if it
  /// may go on, otherwise the seconds until it may.
  double Take(const std::string& client, int64_t now_us);

 private:
  struct Bucket {
    double tokens;
    int64_t at_us;
  };
  void Forget(int64_t now_us);
  double Filled(const Bucket& bucket, int64_t now_us) const;

  double per_second_;
  double burst_;
  size_t clients_max_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace evald::http
