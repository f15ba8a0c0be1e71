#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace evald {

/// A link whose bandwidth all transfers under way share equally. Seconds; any one clock.
class SharedLink {
 public:
  explicit SharedLink(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}

  void Begin(double now, int64_t transfer, double bytes);
  /// Takes a transfer off: it has ended, or nobody wants it any more.
  void End(double now, int64_t transfer);

  struct Next {
    double time = 0;
    int64_t transfer = 0;
  };
  /// The transfer that ends first, and its time, if no other begins or is taken off before.
  std::optional<Next> FirstEnd() const;

 private:
  void Advance(double now);

  double bytes_per_s_;
  double now_ = 0;
  std::map<int64_t, double> left_;  // bytes, by transfer
};

}  // namespace evald
